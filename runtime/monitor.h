// Asks, during a long wait, whether it can still end well; and names the culprit when not.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bootstrap/dial.h"
#include "runtime/core/descriptor.h"
#include "runtime/core/fault.h"
#include "runtime/core/settings.h"
#include "runtime/core/wait.h"
#include "runtime/wiring.h"
#include "tutti/error.h"

namespace tutti {

class Watcher;

/// What all monitors of one communicator look at. Outlives them.
struct Surroundings {
  const Wiring& wiring;
  const Watcher& watcher;
  int rank;
  std::chrono::nanoseconds timeout;
  std::chrono::nanoseconds stall_timeout;
  FaultCell& fault;
  std::function<void(const std::string&)> warn;
};

/// What has gone wrong with other ranks, for a rank that is in no operation: the fault that one published, or
/// ncclRemoteError that names a rank whose process ended without having left; nothing where all is well.
/// Costs a look at the status board and one system call; any thread may ask.
std::optional<Error> failureOfPeers(const Wiring& wiring, int rank);

/// A rank of another host that does not say what it is doing though it was asked, or -1: its process is
/// stopped, or cut off.
int silentRank(const Wiring& wiring);
/// "; rank 2 (pid 4711 on node7) does not answer. ...", or nothing: what a failure may come from, whoever it
/// speaks of.
std::string silentText(const Wiring& wiring);

/// Whether the thread that called the operation waits in it, and so calls nothing else before it ends.
enum class Caller : std::uint8_t { waits, goes_on };

/// How long nothing has moved that ought to, within one wait, as far as inspections tell.
class Stall {
 public:
  /// `is_explained`: at this inspection there is a reason to wait that is no stall.
  std::chrono::nanoseconds lasted(std::chrono::nanoseconds waited, bool is_explained) {
    if (waited < since_) since_ = {};  // another wait
    if (is_explained) since_ = waited;
    return waited - since_;
  }

 private:
  std::chrono::nanoseconds since_{};
};

/// Whether nothing listens at the address of a rank on another host any more: it has left, or its process has
/// ended. For when the control plane may not tell. Asks again and again, without waiting.
class Vanishing {
 public:
  /// Not before the wait has lasted for `first`.
  explicit Vanishing(std::chrono::nanoseconds first) : next_probe_(first) {}

  /// Nothing while that is not known. One rank's address per object.
  std::optional<bool> hasVanished(const NetAddress& listener, std::chrono::nanoseconds waited);

 private:
  std::optional<Probe> probe_;
  std::chrono::nanoseconds next_probe_;
  int refusals_ = 0;  ///< one after the other
};

/// One running operation's view of the other ranks; used by the thread that carries it out. Each operation
/// has a monitor of its own, since several run at once as fibres.
class Monitor : public WaitMonitor {
 public:
  void differs(int peer, const Descriptor& theirs) override;
  bool isLending(int peer) override;

  /// The same as differs() for who must not wait, and calls again: the difference was seen `ago`. False while
  /// it is worth asking the peer, which is on another host, where the ranks parted.
  virtual bool tryDiffers(int peer, const Descriptor& theirs, std::chrono::nanoseconds ago);

 protected:
  Monitor(const Surroundings& around, const Descriptor& descriptor, Caller caller)
      : around_(around), descriptor_(descriptor), caller_(caller) {}
  ~Monitor() = default;

  /// Looks at what cannot be seen in shared memory: asks the ranks of other hosts what they are doing, once
  /// this wait is a long one.
  void lookFarther(std::chrono::nanoseconds waited) const;
  /// Trips the fault cell with a fault that another rank published: theirs is the first cause.
  bool adoptFault();
  /// For each rank whether its process has ended. Of a process on another host it is not known what it had
  /// done before: what it sent last may still be on its way, so its end counts only a little later.
  std::vector<bool> deadRanks(std::chrono::nanoseconds waited);
  /// "died (its process has ended)", or what else is known of the rank's end.
  const char* endText(int rank) const;
  /// Trips the fault cell once `limit` has passed (0: never); before, warns now and then.
  void enforce(std::chrono::nanoseconds waited, std::chrono::nanoseconds limit, const char* setting,
               const std::function<std::string()>& culprit);
  /// Whether nothing listens at the address of a rank on another host any more: it has left, or its process
  /// has ended. Asked of the rank waited for, once the control plane may not tell any more; goes on from
  /// inspection to inspection.
  bool hasVanished(int peer, std::chrono::nanoseconds waited);
  /// Whether it is known what the rank is doing.
  bool isKnown(int rank) const;
  const RankStatus& status(int rank) const { return around_.wiring.board[rank]; }
  /// Which ranks of this host are stopped, whoever is waited for: "; rank 2 (pid 4711 on node7) is stopped".
  std::string stoppedText() const;
  /// "rank 2 (pid 4711 on node7)".
  std::string who(int rank) const;
  /// Whether the rank's line is read in memory, not as a copy.
  bool isLocal(int rank) const;
  /// Trips the fault cell: this rank called `mine`, the other `theirs`.
  void tripMismatch(const std::string& mine, int peer, const std::string& theirs);

  /// Whether this rank cannot call the split that the other waits in, which does nothing else before: then
  /// they wait for each other, unless what the other did before has not arrived yet.
  bool isStuckInSplit(int rank) const;

  /// Whether the other rank, which has left, gave up a split that this one has not called.
  bool hasLeftSplit(int rank) const;

  const Surroundings& around_;
  Descriptor descriptor_;
  Caller caller_;
  Stall stall_;

 private:
  std::chrono::nanoseconds next_warning_ = std::chrono::seconds(10);
  Vanishing vanishing_{std::chrono::seconds(1)};
  std::chrono::nanoseconds seen_lost_{-1};  ///< how long the wait had lasted when a lost rank was first seen
};

/// Of a collective, which all ranks take part in and number alike.
///
/// Looks, in this order: at faults that other ranks published, at processes that died and ranks that left
/// before they completed this operation, at ranks whose operations, this one or the last before it, differ
/// or that are in a split instead, and at the deadlines. Trips the fault cell on the first that it finds.
class CollectiveMonitor final : public Monitor {
 public:
  CollectiveMonitor(const Surroundings& around, std::uint64_t operation, const Descriptor& descriptor,
                    Caller caller)
      : Monitor(around, descriptor, caller), operation_(operation) {}

  void inspect(int peer, std::chrono::nanoseconds waited) override;
  void differs(int peer, const Descriptor& theirs) override;
  bool tryDiffers(int peer, const Descriptor& theirs, std::chrono::nanoseconds ago) override;

 private:
  bool findDeparted(std::chrono::nanoseconds waited);
  bool findMismatch();
  bool findMismatchWith(int peer);
  bool findSplit(std::chrono::nanoseconds waited);
  void checkDeadlines(int peer, std::chrono::nanoseconds waited);
  std::vector<int> absentRanks() const;
  std::string list(const std::vector<int>& ranks) const;
  std::string operationText() const;

  std::uint64_t operation_;
};

/// Of one side of a point-to-point transfer, which only two ranks know of.
///
/// Looks, in this order: at faults that other ranks published, at the death or leaving of the peer, at the
/// peer being inside a collective or a split that this rank has not entered, and at TUTTI_TIMEOUT. What the
/// peer did before it left, or entered another operation, may have arrived but not been looked at yet: so
/// both are believed only when the next inspection finds them too, because the wait's own question is asked
/// in between.
class TransferMonitor final : public Monitor {
 public:
  TransferMonitor(const Surroundings& around, const Descriptor& descriptor, bool is_send, Caller caller)
      : Monitor(around, descriptor, caller), is_send_(is_send) {}

  void inspect(int peer, std::chrono::nanoseconds waited) override;

 private:
  bool findDeparted(int peer, std::chrono::nanoseconds waited);
  bool findElsewhere(int peer, std::chrono::nanoseconds waited);
  bool findSplit(int peer);
  std::string pendingText(int peer) const;

  bool is_send_;
  bool seen_departed_ = false;
  bool seen_in_split_ = false;
  std::uint64_t seen_elsewhere_ = 0;  ///< the peer's collective, at the last inspection
};

}  // namespace tutti
