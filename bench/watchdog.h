// The time limit of -T: aborts a thread's communicators when a row of the table takes too long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"

namespace tutti::perf {

/// Watches a thread's ranks from a thread of its own. When the limit passes, it says so on standard error and
/// calls ncclCommAbort, which ends the operation that the ranks are inside of; the communicators are gone
/// then. Should the thread not come back even so, the process is ended with status 1.
class Watchdog {
 public:
  /// `rank` is the first of the ranks, for words. `limit` of 0 watches nothing and starts no thread.
  Watchdog(std::vector<ncclComm_t> comms, int rank, std::chrono::seconds limit);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Starts the clock anew, for `what`.
  void arm(const std::string& what);
  void disarm();

  /// The communicators were aborted by the watchdog.
  bool fired() const;

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void expire(std::unique_lock<std::mutex>& lock);

  std::vector<ncclComm_t> comms_;  // set at construction, as are the next two
  int rank_;
  std::chrono::seconds limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;            // guarded by mutex_, like all that follow
  Clock::time_point deadline_;  // the end of time when nothing is watched
  bool fired_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tutti::perf
