// What a rank shows to all others, in memory that they all map: its line of the status board.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <tuple>

#include "runtime/core/attendance.h"
#include "runtime/core/descriptor.h"

namespace tutti {

/// Written by its rank only; read by the others, and only when they have waited for long. All zero at the
/// start.
struct alignas(128) RankStatus {
  enum class State : std::uint32_t {
    active = 0,  ///< taking part
    left = 1,    ///< destroyed its communicator in good order
    failed = 2,  ///< hit a fault: code and text say which
  };

  /// So many descriptors stay: a rank that waits for nobody, such as the root of small broadcasts, may be
  /// some operations ahead of those that find out that it differs.
  static constexpr std::uint64_t kKept = 8;
  /// Stands for a descriptor that is not known, in copies of the line.
  static constexpr std::array<std::uint64_t, 2> kUnknown{~std::uint64_t{0}, ~std::uint64_t{0}};

  /// Numbers of the operation that this rank entered last and completed last; the first is 1. `entered` is
  /// stored with release after the descriptor's words.
  std::atomic<std::uint64_t> entered;
  std::atomic<std::uint64_t> completed;
  /// Descriptor of operation k in pair k % kKept. It stays until operation k + kKept is entered.
  std::array<std::array<std::atomic<std::uint64_t>, 2>, kKept> words;

  /// Stored with release after code and text, which are written once.
  std::atomic<State> state;
  std::int32_t code;
  std::array<char, 1024> text;
  /// Not 0: the rank touches memory of others no more, stored with release. GPU memory is freed only when the
  /// ranks that had opened it are detached.
  std::atomic<std::uint32_t> detached;

  /// An Attendance: what this rank last called to make other communicators. By its release, whoever sees it
  /// sees what the rank entered before.
  std::atomic<std::uint64_t> attendance;

  /// The ranks that the last shrink leaves out, stored before `attendance`, which has a hash of them.
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<decltype(RankSet::words)>> excluded;

  /// A meeting that this rank has called: whose it is, and the unique id by which they join. `meeting` is its
  /// number, stored with release after the rest; 0 while there is none.
  std::atomic<std::uint64_t> meeting;
  std::atomic<std::uint64_t> meeting_key;
  std::array<std::atomic<std::uint64_t>, 16> meeting_id;

  struct Meeting {
    std::uint64_t number = 0;
    std::uint64_t key = 0;
    std::array<std::uint64_t, 16> id{};
  };

  void exclude(const RankSet& ranks) {
    for (std::size_t i = 0; i < excluded.size(); ++i) {
      excluded[i].store(ranks.words[i], std::memory_order_release);
    }
  }
  RankSet readExcluded() const {
    RankSet ranks;
    for (std::size_t i = 0; i < excluded.size(); ++i) {
      ranks.words[i] = excluded[i].load(std::memory_order_acquire);
    }
    return ranks;
  }

  void attend(const Attendance& mine) {
    attendance.store(std::bit_cast<std::uint64_t>(mine), std::memory_order_release);
  }
  Attendance readAttendance() const {
    return std::bit_cast<Attendance>(attendance.load(std::memory_order_acquire));
  }

  void call(const Meeting& called) {
    meeting.store(0, std::memory_order_release);
    // Release, so that whoever sees a new word also sees that the meeting before is over.
    meeting_key.store(called.key, std::memory_order_release);
    for (std::size_t i = 0; i < called.id.size(); ++i) {
      meeting_id[i].store(called.id[i], std::memory_order_release);
    }
    meeting.store(called.number, std::memory_order_release);
  }

  /// The meeting that is called now; number 0: none.
  Meeting readMeeting() const {
    Meeting seen{.number = meeting.load(std::memory_order_acquire)};
    seen.key = meeting_key.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < seen.id.size(); ++i) {
      seen.id[i] = meeting_id[i].load(std::memory_order_acquire);
    }
    // The words are rewritten only after the number was taken back; the acquires above keep this look behind
    // them.
    if (meeting.load(std::memory_order_relaxed) != seen.number) return {};
    return seen;
  }

  void enter(std::uint64_t operation, const Descriptor& descriptor) {
    const auto raw = std::bit_cast<std::array<std::uint64_t, 2>>(descriptor);
    auto& pair = words[operation % kKept];
    // Release, so that whoever sees a new word also sees that the operation before was entered.
    pair[0].store(raw[0], std::memory_order_release);
    pair[1].store(raw[1], std::memory_order_release);
    entered.store(operation, std::memory_order_release);
  }

  /// The descriptor of `operation`, if the rank has entered it and at most kKept - 2 more since; else false.
  bool readDescriptor(std::uint64_t operation, Descriptor& descriptor) const {
    if (entered.load(std::memory_order_acquire) < operation) return false;
    const auto& pair = words[operation % kKept];
    const std::array<std::uint64_t, 2> raw{pair[0].load(std::memory_order_acquire),
                                           pair[1].load(std::memory_order_acquire)};
    // The pair is rewritten only after operation + kKept - 1 was entered; the acquires above keep this look
    // behind them.
    if (entered.load(std::memory_order_relaxed) > operation + kKept - 2 || raw == kUnknown) return false;
    descriptor = std::bit_cast<Descriptor>(raw);
    return true;
  }
};
static_assert(sizeof(RankStatus) == 1536);

}  // namespace tutti
