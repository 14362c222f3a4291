#include "tools/cuda_emulator/machine/block_threads.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>

namespace tutti::emulator {
namespace {

/// An idle thread keeps the stacks of its fibres: long enough for a program's next launch, not for ever.
constexpr std::chrono::seconds kIdleTime{2};

}  // namespace

struct BlockThreads::Worker {
  std::condition_variable wake;
  std::function<void()> job;  // under mutex_
};

BlockThreads& BlockThreads::ofProcess() {
  // Never destroyed: its threads may outlive static objects.
  static BlockThreads& threads = *new BlockThreads;
  return threads;
}

void BlockThreads::start(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Worker& worker = *idle_.back();
      idle_.pop_back();
      worker.job = std::move(job);
      worker.wake.notify_one();
      return;
    }
  }
  std::thread([this, first = std::move(job)]() mutable {
    // Naps of a few microseconds are to be that.
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    Worker worker;
    worker.job = std::move(first);
    work(worker);
  }).detach();
}

void BlockThreads::work(Worker& worker) {
  do {
    std::function<void()> job = std::move(worker.job);
    worker.job = nullptr;
    job();
  } while (waitForJob(worker));
}

bool BlockThreads::waitForJob(Worker& worker) {
  std::unique_lock lock(mutex_);
  idle_.push_back(&worker);
  if (worker.wake.wait_for(lock, kIdleTime, [&] { return worker.job != nullptr; })) return true;
  idle_.erase(std::find(idle_.begin(), idle_.end(), &worker));
  return false;
}

}  // namespace tutti::emulator
