#include "tools/cuda_emulator/machine/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "tools/cuda_emulator/machine/block.h"
#include "tools/cuda_emulator/machine/block_threads.h"
#include "tools/cuda_emulator/machine/faults.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

u64 nextLaunchNumber() {
  static std::atomic<u64> count{0};
  return count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Launch::Launch(const LaunchPlan& plan) : plan_(plan), number_(nextLaunchNumber()) {}

void Launch::run() {
  static const auto cores = std::max<std::uint64_t>(1, std::thread::hardware_concurrency());
  const auto first =
      static_cast<u32>(std::min<std::uint64_t>({cores, plan_.blockCount(), kMostBlocksAtOnce}));
  order_.release(kBegin);
  workers_ = 1;
  for (u32 i = 1; i < first; ++i) startWorker();
  work();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return active_workers_ == 0; });
  order_.acquire(kEnd);
  if (!error_.empty()) throw Error(ncclUnhandledCudaError, error_);
}

void Launch::startWorker() {
  workers_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    ++active_workers_;
  }
  try {
    BlockThreads::ofProcess().start([this] {
      const MachineCode machine;
      work();
      workerEnds();
    });
  } catch (const std::system_error& error) {
    fail(fmt::format("kernel {}: no thread for one more block: {}", plan_.kernel, error.what()));
    workerEnds();
  }
}

void Launch::workerEnds() {
  // The launch may be gone once the lock is.
  const std::lock_guard lock(mutex_);
  --active_workers_;
  idle_.notify_all();
}

void Launch::work() {
  prepareForFaults();
  while (!cancelled()) {
    const std::uint64_t index = next_block_.fetch_add(1, std::memory_order_relaxed);
    if (index >= plan_.blockCount()) return;
    Block(*this, index).run();
  }
}

void Launch::blockWaits() {
  if (next_block_.load(std::memory_order_relaxed) >= plan_.blockCount() || cancelled()) return;
  if (workers_.load(std::memory_order_relaxed) >= kMostBlocksAtOnce) return;
  startWorker();
}

void Launch::fail(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (error_.empty()) error_ = message;
  cancelled_.store(true, std::memory_order_relaxed);
}

}  // namespace tutti::emulator
