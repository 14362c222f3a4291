// The control plane of a communicator that spans hosts: what ranks tell each other beside the data, while it
// lives.
//
// The ranks' channels form a tree, as the bootstrap made it. Over it go
//   news    of a rank that failed, left or was lost: at once, to all
//   calls   to a meeting of some ranks: to all
//   letters from one rank to another, of its network links
//   status  of all ranks, when somebody has waited for long: asked for towards the root, which collects what
//   every
//           rank is doing, and tells all
// so that a rank knows of ranks on other hosts what it reads of its own host's in shared memory.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/answers.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/unique_fd.h"
#include "runtime/watcher.h"

namespace tutti {

/// One rank's end. Attended by the Watcher; the rest is called by any thread.
class ControlPlane final : public Watched {
 public:
  /// Called in attend().
  struct Events {
    std::function<void(int rank)> gone;  ///< a rank left or was lost
    std::function<void(int from, std::span<const std::uint8_t> letter)> letter;
  };

  /// `mine` is this rank's line of the status board, and outlives the object.
  ControlPlane(ControlTree tree, int nranks, int rank, RankStatus& mine, Events events);
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  ~ControlPlane() = default;

  /// The copy of another rank's line; written in attend().
  RankStatus& copyOf(int rank) { return copies_[static_cast<std::size_t>(rank)]; }

  /// Wants to know what all ranks are doing: the copies will be a fraction of a second old while this is
  /// called again and again. Cheap, and does not wait.
  void ask(const Watcher& watcher);

  /// This rank's line says that it failed or left: tells all.
  void announce(const Watcher& watcher);

  /// This rank's line says that it called a meeting: tells all.
  void call(const Watcher& watcher);

  /// To another rank, along the tree; in order. It is lost where a rank on the way is.
  void send(int to, std::vector<std::uint8_t> letter, const Watcher& watcher);

  /// Sends what was announced, for up to half a second. After the Watcher has let go of it.
  void flush();

  /// Whether the rank's process has ended without a word, as far as is known here, or why else it was lost.
  bool isLost(int rank) const {
    return lost_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }

  /// Whether some rank has left or was lost: then news may not reach this one any more.
  bool hasGaps() const { return has_gaps_.load(std::memory_order_acquire); }

  /// Whether the copy of the rank's line is recent, if ask() was called again and again.
  bool isKnown(int rank) const { return answers_.isKnown(rank); }

  /// Whether the rank, which was not lost, does not answer: see Answers.
  bool isSilent(int rank) const;

  /// Of the silent ranks the one that was heard last longest ago; -1: there is none.
  int silentRank() const;

  int fd() const override { return epoll_.get(); }
  Next attend() override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A rank's line, as it travels.
  struct Entry {
    std::int32_t rank = -1;
    RankStatus::State state = RankStatus::State::active;
    std::uint64_t attendance = 0;
    RankSet excluded;
    std::uint64_t entered = 0;
    std::uint64_t completed = 0;
    std::array<std::array<std::uint64_t, 2>, RankStatus::kKept>
        words{};  ///< RankStatus::kUnknown: was overtaken
  };

  /// A round of collecting, on one node of the tree.
  struct Round {
    std::uint64_t number = 0;
    std::vector<Entry> entries;
    std::size_t missing_children = 0;
    Clock::time_point deadline;
  };

  Entry ownEntry() const;
  void store(const Entry& entry);
  void hear(const Neighbour& from, const Bytes& message);
  void hearRound(const Neighbour& from, std::span<const std::uint8_t> payload, const Bytes& message);
  void hearNews(const Neighbour& from, std::span<const std::uint8_t> payload, const Bytes& message);
  void hearLost(const Neighbour& from, std::span<const std::uint8_t> payload, const Bytes& message);
  void hearCall(const Neighbour& from, std::span<const std::uint8_t> payload, const Bytes& message);
  void hearLetter(std::span<const std::uint8_t> payload, const Bytes& message);
  void forward(int to, const Bytes& message);
  void sendLetters();
  void lose(const Neighbour& neighbour);
  void startRound(std::uint64_t number);
  void finishRound();
  void takeTable(std::span<const Entry> entries);
  void sendAsked();
  void tend(Neighbour& neighbour);
  bool isOpen(const Neighbour& neighbour) const;
  void flood(const Bytes& message, const Neighbour* except);
  template <class Visit>
  void forNeighbours(const Visit& visit);

  ControlTree tree_;
  int nranks_;
  int rank_;
  RankStatus& mine_;
  Events events_;
  std::mutex letters_mutex_;
  std::vector<std::pair<int, Bytes>> letters_;  ///< to be sent: to whom, and the message
  UniqueFd epoll_;
  std::vector<RankStatus> copies_;       ///< by rank
  std::vector<std::atomic<bool>> lost_;  ///< by rank
  Answers answers_;
  std::atomic<bool> wants_status_{false};
  std::atomic<bool> wants_announcement_{false};
  std::atomic<bool> wants_call_{false};
  std::atomic<bool> has_gaps_{false};
  bool is_announced_ = false;
  std::optional<Round> round_;
  std::uint64_t last_round_ = 0;
  Clock::time_point next_round_{};
};

}  // namespace tutti
