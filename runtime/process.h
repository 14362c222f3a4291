// The one object per process: what cannot belong to a communicator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/settings.h"
#include "runtime/gpu_library.h"
#include "runtime/host_topology.h"
#include "runtime/loaded_twice.h"
#include "runtime/log.h"
#include "runtime/ring_searches.h"
#include "runtime/watcher.h"
#include "transports/secure_channel.h"
#include "transports/segment.h"

namespace tutti {

/// Something that has a last thing to do when the process exits.
class EndsWithProcess {
 public:
  virtual void endWithProcess() noexcept = 0;

 protected:
  ~EndsWithProcess() = default;
};

/// Thread-safe. Made at first use and never destroyed, because ranks' threads may outlive main().
class Process {
 public:
  static Process& instance();

  /// The same at exit: nullptr in a child of fork() that has not used the library. It may have found no
  /// program to execute, and leaves everything alone.
  static Process* instanceAtExit() {
    return made_->is_copy_.load(std::memory_order_acquire) ? nullptr : made_;
  }

  /// The environment's settings, read once. Throws Error(ncclInvalidUsage) while a variable is wrong, and
  /// where another copy of the library takes part of the program's calls. The first call logs that there is
  /// another copy at all.
  const Settings& settings();
  Log& log();
  /// Logs once why communicators are on host memory, where that was not asked for.
  void sayHostMemory(const std::string& why);
  /// Logs once which variables that are set change nothing for communicators on that memory.
  void sayIgnored(bool on_gpus);
  /// What ncclGetVersion says; that of nccl.h where a variable is wrong.
  int ncclVersion();

  /// How often fork() lies between this process and the one that first used the library.
  std::uint32_t forks() const { return forks_.load(std::memory_order_relaxed); }

  SegmentCache& segments() { return segments_; }
  Watcher& watcher() { return *watcher_; }
  GpuLibrary& gpus() { return gpus_; }
  HostTopology& topology() { return *topology_; }
  RingSearches& rings() { return *rings_; }

  /// From here to forget(), exit() and the end of main() call the object's endWithProcess().
  void remember(EndsWithProcess& object);
  void forget(EndsWithProcess& object);

  /// Held while queued work gets its places: two pieces of work are then in the same order in all queues.
  std::mutex& issueOrder() { return issue_order_; }

  /// Whether that is the id of the first communicator that was asked about here.
  bool isFirst(const Secret& communicator);

  /// Random, names this process among all ranks; another one after fork().
  std::array<std::uint8_t, 16> token();

  /// Text of the last error that this thread was told of, else of the process; at most 1023 bytes.
  void setLastError(const std::string& message);
  std::string lastError();

  /// ncclMemAlloc and ncclMemFree: page-aligned, zero, in a segment that peers can map once it is registered.
  void* allocate(std::size_t bytes);
  /// Throws Error for memory that allocate did not return, or that is pinned.
  void release(void* memory);

  /// The allocation that holds `bytes` at `memory`, which stays until it is unpinned; nullptr where there is
  /// none. Pins are counted.
  std::shared_ptr<Segment> pin(const void* memory, std::size_t bytes);
  void unpin(const void* memory);

 private:
  Process();
  const Settings& readOnce();
  void lockForFork();
  void unlockAfterFork();
  void becomeCopy();
  void becomeOwn();
  void endRemembered();
  void sayRemarks();

  static inline Process* made_ = nullptr;
  std::mutex mutex_;
  std::mutex issue_order_;
  std::optional<Settings> settings_;
  std::vector<std::string> remarks_;  ///< on the environment
  std::optional<Log> log_;
  std::once_flag first_look_;  ///< what is told once is
  std::once_flag host_memory_told_;
  std::array<std::once_flag, 2> ignored_told_;  ///< on host memory, on GPUs
  OtherCopies copies_;
  SegmentCache segments_;
  std::unique_ptr<Watcher> watcher_ = std::make_unique<Watcher>();
  std::atomic<std::uint32_t> forks_{0};
  std::mutex renewal_;
  std::atomic<bool> is_copy_{false};  ///< of the parent's, after fork()
  GpuLibrary gpus_;
  std::unique_ptr<HostTopology> topology_ = std::make_unique<HostTopology>();
  std::unique_ptr<RingSearches> rings_ = std::make_unique<RingSearches>();
  std::mutex remembered_mutex_;
  std::set<EndsWithProcess*> remembered_;
  std::array<std::uint8_t, 16> token_{};
  int token_pid_ = 0;
  std::string last_error_;
  std::optional<Secret> first_communicator_;
  struct Allocation {
    std::shared_ptr<Segment> segment;
    int pins = 0;
  };
  /// The allocation that `memory` points into, or allocations_.end().
  std::map<const std::byte*, Allocation>::iterator allocationOf(const void* memory);
  std::map<const std::byte*, Allocation> allocations_;  ///< by first byte
};

}  // namespace tutti
