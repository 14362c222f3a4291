// The tree that the ranks of a communicator talk over: rank r is the child of rank (r - 1) / 16.
//
//              0
//      ┌───────┼─ ··· ─┐
//      1       2      16
//   ┌──┼─┐   ┌─┼─┐
//   17 ·· 32 33 ·· 48 ···          1024 ranks: three levels below rank 0, at most 17 channels per rank
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bootstrap/messages.h"
#include "transports/secure_channel.h"

namespace tutti {

inline constexpr int kTreeFanOut = 16;

constexpr int treeParent(int rank) { return rank == 0 ? kRendezvous : (rank - 1) / kTreeFanOut; }

inline std::vector<int> treeChildren(int rank, int nranks) {
  std::vector<int> children;
  for (int child = rank * kTreeFanOut + 1; child <= (rank + 1) * kTreeFanOut && child < nranks; ++child) {
    children.push_back(child);
  }
  return children;
}

/// 0 for a rank that has no children.
constexpr int treeLevelsBelow(int rank, int nranks) {
  int levels = 0;
  for (int first = rank * kTreeFanOut + 1; first < nranks; first = first * kTreeFanOut + 1) ++levels;
  return levels;
}

/// A rank at the other end of an open channel.
struct Neighbour {
  int rank;
  SecureChannel channel;
  std::deque<Bytes> early;  ///< came for who has the channel now, before it had it
};

/// A rank's place in the tree. Rank 0 has no parent.
struct ControlTree {
  std::optional<Neighbour> parent;
  std::vector<Neighbour> children;
};

/// The channels of one rank while its communicator is being made. Used by one thread; nothing here waits
/// except flood() and leave(), and those for at most about 1 s.
class TreeChannels {
 public:
  void setTable(std::vector<RankAddress> table) { table_ = std::move(table); }
  const std::vector<RankAddress>& table() const { return table_; }
  /// "rank 2 (pid 4711 on node7)".
  std::string describe(int rank) const;

  void add(int rank, SecureChannel channel);
  /// Closes the channel to a neighbour that is no longer one.
  void remove(int rank);
  bool has(int rank) const { return find(rank) != nullptr; }

  void addTo(std::vector<pollfd>& fds) const;

  /// Reads and writes what is possible now. Throws Error: the failure that a neighbour tells of, or that one
  /// ended without having left.
  void pump();

  /// The same without looking at what arrives: it stays for whoever asks next.
  void write() noexcept;

  void send(int rank, const Bytes& message) { find(rank)->channel.send(message); }
  bool wantsToWrite() const;
  bool hasEnded(int rank) const { return find(rank)->ended; }

  /// The next message of a neighbour, if it is here. Throws Error when it tells of a failure.
  std::optional<Bytes> take(int rank);
  /// Throws Error when the neighbour, from which a message is awaited, has left.
  void requirePresent(int rank) const;

  /// Tells all neighbours of a failure. The first one counts: later calls do nothing.
  void flood(const Error& error) noexcept;

  /// Tells all neighbours that this rank is complete, and closes.
  void leave() noexcept;

  /// Hands the open channels over, with what has arrived in them since the last collective.
  ControlTree release(int rank);

 private:
  struct Channel {
    int rank;
    SecureChannel channel;
    std::deque<Bytes> inbox;
    std::deque<Bytes> later;  ///< for who has the channel next
    bool ended = false;
    bool left = false;  ///< it is complete: its end is no failure
  };

  const Channel* find(int rank) const;
  Channel* find(int rank);
  void read(Channel& from);
  void deliver() noexcept;
  [[noreturn]] void sayLost(const Channel& from) const;

  std::vector<Channel> channels_;
  std::vector<RankAddress> table_;
  bool is_failed_ = false;
};

}  // namespace tutti
