// The time limit of -T: aborts a rank's communicator when a row of the table takes too long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "nccl.h"

namespace tutti::perf {

/// Watches one rank from a thread of its own. When the limit passes, it says so on standard error and calls
/// ncclCommAbort, which ends the operation that the rank is inside of; the communicator is gone then. Should
/// the rank not come back even so, the process is ended with status 1.
class Watchdog {
 public:
  /// `limit` of 0 watches nothing and starts no thread.
  Watchdog(ncclComm_t comm, int rank, std::chrono::seconds limit);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Starts the clock anew, for `what`.
  void arm(const std::string& what);
  void disarm();

  /// The communicator was aborted by the watchdog.
  bool fired() const;

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void expire(std::unique_lock<std::mutex>& lock);

  ncclComm_t comm_;  // set at construction, as are the next two
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
