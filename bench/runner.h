// One thread's part of a run: the sweep over types, operations or roots, and sizes, for the ranks that the
// thread drives (-g; mostly one).
//
// Every rank goes through the same rows in the same order. For each row, first out of place, then in place:
//
//   warm-up → barrier → n iterations of m operations, timed → times gathered → c checked operations
//
// The timed operations walk through the buffers, so that small messages do not always hit the same cache
// lines (as nccl-tests does); the checked ones run on fresh inputs (trial.h). On a GPU the time is from the
// first call to the end of the last operation on the stream; with -G the operations are recorded first, and
// their replays are timed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/case.h"
#include "bench/collective.h"
#include "bench/options.h"
#include "bench/rank.h"
#include "bench/report.h"
#include "bench/results.h"
#include "bench/watchdog.h"
#include "tools/device/exchange.h"

namespace tutti::perf {

class Graphs;

class Runner {
 public:
  /// `seats` do the work, in the communicator of their group. `world` are the same ranks in one of all
  /// groups, where times and errors are gathered; where there is one group, the same seats. `report` is null
  /// except where the world's rank 0 is among them. All arguments outlive the object.
  Runner(const Options& options, const Collective& collective, Call call, std::span<const device::Seat> seats,
         std::span<const device::Seat> world, Report* report);

  /// The whole run; collective. Throws Error when an operation fails.
  Totals run();

  /// The time limit passed, and this thread has said so.
  bool timedOut() const { return watchdog_.fired(); }

 private:
  Row runCase(const Case& item);
  Measurement measure(const Case& item, bool in_place);
  std::vector<double> timeIterations(const Case& item, bool in_place);
  std::vector<double> timeReplays(const std::function<void()>& iterate);
  void replay(const Graphs& graphs) const;
  std::uint64_t checkOnce(const Case& item, bool in_place);

  void operate(bool in_place, std::size_t shift_bytes);
  void finish();
  std::vector<double> gather(const std::vector<double>& own);
  bool stopRequested();

  const Options& options_;
  const Collective& collective_;
  std::span<const device::Seat> seats_;
  Report* const report_;
  device::Exchange exchange_;  // of the world
  const int nranks_;           // of the group
  const std::size_t largest_bytes_;
  std::deque<Rank> ranks_;  // of the seats; they cannot be moved
  Watchdog watchdog_;
  std::uint64_t repetition_ = 0;  ///< counts checks, so that stale data of an earlier one is seen
};

}  // namespace tutti::perf
