// How some ranks of a communicator come together again, to make another one.
//
// The first of them opens a rendezvous and writes its unique id into its line of the status board, where the
// others look for it; the control plane carries the line to other hosts. Links play no part: ranks meet while
// operations are queued, and after a fault.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nccl.h"
#include "runtime/core/attendance.h"
#include "runtime/core/settings.h"
#include "runtime/process.h"
#include "runtime/wiring.h"

namespace tutti {

/// The meetings of one rank. One thread at a time holds one.
class Meetings {
 public:
  /// `is_idle` says whether nothing of this rank is queued or under way; `fail` makes something the fault of
  /// the communicator, unless it has one.
  Meetings(Process& process, const Settings& settings, const Wiring& wiring, int rank,
           std::function<bool()> is_idle, std::function<void(ncclResult_t, const std::string&)> fail)
      : process_(process),
        settings_(settings),
        wiring_(wiring),
        rank_(rank),
        is_idle_(std::move(is_idle)),
        fail_(std::move(fail)) {}

  /// This rank calls `call`, as `ranks` do, of which it is one: shown to the others until end().
  void begin(Attendance::Call call, const std::vector<int>& ranks);
  void end() noexcept;
  /// All came to the split. `number`: the largest of those that the ranks gave it.
  void agree(std::uint32_t number);
  /// That this rank gives the split that it is in.
  std::uint32_t splitNumber() const { return shown_.splits; }

  /// The id by which the ranks of begin(), in their order, can join each other. A unique id serves one
  /// communicator, or one Bootstrap. `check` is asked meanwhile: what it throws ends the wait.
  ncclUniqueId call(const std::function<void()>& check);

  /// A rendezvous where this rank is reached by `ranks`. `missing_words` follows the names of those that do
  /// not come to it.
  ncclUniqueId open(const std::vector<int>& ranks, const std::string& missing_words) const;

  /// Throws Error(ncclSystemError) naming those of the ranks of begin() that did not call the same, when
  /// TUTTI_INIT_TIMEOUT has passed, or as soon as another rank has given up for that;
  /// Error(ncclInvalidUsage) as soon as one of them waits for this rank in another call, or with another
  /// list: then it tells all, and they hear the same.
  void requireComing();

  /// Throws Error(ncclRemoteError) naming one of `ranks` that has left or whose process has ended, or the
  /// fault that one published, unless that is accepted: it becomes this rank's, since others may see this one
  /// end before they hear of it. Who left after it had called what this rank is in is
  /// not to blame.
  enum class Faults : std::uint8_t { refused, accepted };
  void requireAlive(const std::vector<int>& ranks, Faults faults) const;

 private:
  void withdraw() noexcept;
  ncclUniqueId await(int caller, std::uint64_t key, const std::function<void()>& check);
  void requireSame(std::chrono::nanoseconds waited);
  std::optional<std::pair<int, int>> findDifference(std::chrono::nanoseconds waited) const;
  bool hasRefused(int rank) const;
  bool waitsElsewhere(int rank, int other) const;
  std::vector<bool> gone() const;
  bool hasGivenUp(int rank) const;
  bool hasCalled(int rank) const;
  std::string absence(int rank) const;
  std::string brokenTree(const std::vector<bool>& gone) const;

  Process& process_;
  const Settings& settings_;
  const Wiring& wiring_;
  int rank_;
  std::function<bool()> is_idle_;
  std::function<void(ncclResult_t, const std::string&)> fail_;
  Attendance shown_;          ///< in this rank's line
  RankSet excluded_;          ///< of a shrink
  std::set<RankSet> shrunk_;  ///< lists of shrinks that are over here: others may still be in them
  std::vector<int> ranks_;    ///< of begin()
  std::chrono::steady_clock::time_point begun_;
  std::vector<Attendance> shown_before_;  ///< by rank: at begin()
  std::vector<bool> gone_before_;         ///< by rank: at begin(); what their lines say is of an earlier call
  std::uint32_t agreed_splits_ = 0;       ///< so many splits all ranks have come to
  std::uint64_t called_ = 0;              ///< meetings that this rank has called
  std::map<int, std::uint64_t> attended_;  ///< by caller: the number of the last one
};

/// Ends what begin() began.
class MeetingEnd {
 public:
  explicit MeetingEnd(Meetings& meetings) : meetings_(meetings) {}
  MeetingEnd(const MeetingEnd&) = delete;
  MeetingEnd& operator=(const MeetingEnd&) = delete;
  ~MeetingEnd() { meetings_.end(); }

 private:
  Meetings& meetings_;
};

}  // namespace tutti
