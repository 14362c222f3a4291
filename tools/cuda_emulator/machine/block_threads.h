// The OS threads that blocks run in, kept for the next launch.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::emulator {

/// Thread-safe. One per process; lives until the process ends.
class BlockThreads {
 public:
  static BlockThreads& ofProcess();

  /// Runs the job in an idle thread, or in a new one: never later than others. It must not throw.
  void start(std::function<void()> job);

 private:
  struct Worker;
  void work(Worker& worker);
  /// Waits for a job; false when none came for so long that the thread may end.
  bool waitForJob(Worker& worker);

  std::mutex mutex_;
  std::vector<Worker*> idle_;  // under mutex_; the last one became idle last
};

}  // namespace tutti::emulator
