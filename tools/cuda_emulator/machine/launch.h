// One kernel launch, as its blocks share it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "tools/cuda_emulator/machine/device/abi.h"
#include "tools/cuda_emulator/machine/module.h"
#include "tools/cuda_emulator/machine/races.h"

namespace tutti::emulator {

/// What the launch is; lives, with what it points to, until the launch is over.
struct LaunchPlan {
  std::string_view kernel;  // as its author wrote it
  std::string_view symbol;  // as PTX calls it
  Entry entry = nullptr;
  std::uintptr_t code_begin = 0;  // where the module's code lies
  std::uintptr_t code_end = 0;
  LaunchShape shape;
  u8* const* variables = nullptr;
  std::span<const MemoryRange> variable_ranges;
  u8* arguments = nullptr;  // aligned to 16
  std::size_t argument_bytes = 0;
  std::size_t static_shared_bytes = 0;

  std::uint64_t blockCount() const { return std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z; }
  u32 threadsPerBlock() const { return shape.block.x * shape.block.y * shape.block.z; }
};

/// Runs the blocks: each in an OS thread of its own, as many at once as wait for each other. Blocks start in
/// order; a further one starts as soon as one that runs has to wait, up to kMostBlocksAtOnce.
class Launch {
 public:
  explicit Launch(const LaunchPlan& plan);

  /// Returns when every block is done; the calling thread runs some of them. Throws the first Error.
  void run();

  const LaunchPlan& plan() const { return plan_; }
  u64 number() const { return number_; }
  /// From any block: keeps the first message and cancels the others.
  void fail(const std::string& message);
  /// Asked by every thread that waits, which then unwinds.
  bool cancelled() const {
    return cancelled_.load(std::memory_order_relaxed) || plan_.shape.stop.stop_requested();
  }
  /// A block has to wait: another may run.
  void blockWaits();

  /// What orders its threads with what comes before and after it.
  OrderWords& order() { return order_; }
  static constexpr std::size_t kBegin = 0;
  static constexpr std::size_t kEnd = 1;

  static constexpr u32 kMostBlocksAtOnce = 512;

 private:
  void startWorker();
  void workerEnds();
  void work();

  const LaunchPlan& plan_;
  u64 number_;
  OrderWords order_{2};
  std::atomic<std::uint64_t> next_block_{0};
  std::atomic<bool> cancelled_{false};
  std::atomic<u32> workers_{0};  // that were started, the caller included
  std::mutex mutex_;
  std::condition_variable idle_;
  u32 active_workers_ = 0;  // under mutex_
  std::string error_;       // under mutex_
};

}  // namespace tutti::emulator
