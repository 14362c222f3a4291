// Buffers that a communicator knows: what ncclCommRegister is about.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/core/accelerator.h"
#include "runtime/core/region.h"

namespace tutti {

class Network;
class Process;
class Segment;

/// The registered buffers of one rank of a communicator. Thread-safe.
///
/// A buffer inside memory of ncclMemAlloc becomes a region: an entry in memory that all peers see, by which
/// each of them maps it when it first meets a reference to it; on a GPU, any memory that can be exported.
/// Other memory cannot be mapped by peers; registering it is accepted, as NCCL's users expect. Networks that
/// can work on any host memory in place learn of all of it.
class Registrations {
 public:
  /// `table`: this rank's, in memory shared with its peers. `network`: nullptr without other hosts. `gpu`:
  /// nullptr, or where buffers lie on a GPU.
  Registrations(Process& process, RegionTable& table, Network* network, GpuRank* gpu, int rank)
      : process_(process), table_(table), network_(network), gpu_(gpu), rank_(rank) {}
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  /// Deregisters what still is registered.
  ~Registrations() { clear(); }

  /// Deregisters everything.
  void clear();

  /// Returns the handle, never nullptr; *note says in words what peers can do with the buffer. Throws
  /// Error(ncclInvalidArgument) for NULL, no bytes or too many, Error(ncclInvalidUsage) for bytes that are
  /// registered already.
  void* add(const void* buffer, std::size_t bytes, std::string* note);

  /// Throws Error(ncclInvalidArgument) for a handle that add did not return or that was removed already.
  void remove(const void* handle);

  /// Whether no buffer is registered. Cheap: for callers who then need not ask further.
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  /// The region that `bytes` at `buffer` lie in. On a GPU: none, and a warning, where they were freed while
  /// registered and other memory got their address, which peers do not know.
  RegionPlace find(const void* buffer, std::size_t bytes);

 private:
  struct Buffer {
    std::uintptr_t begin;
    std::size_t bytes;
    std::uint32_t region;         ///< 0: none
    std::uint64_t region_offset;  ///< of the buffer in its region
  };
  void makeHostRegion(Buffer& buffer, std::string* note);
  void makeGpuRegion(Buffer& buffer, std::string* note);
  std::uint32_t publish(const Segment& segment);
  void forgetFreed(Buffer& buffer);
  void forget(const Buffer& buffer, std::chrono::steady_clock::time_point deadline);

  Process& process_;
  RegionTable& table_;
  Network* network_;
  GpuRank* gpu_;
  int rank_;
  std::mutex mutex_;
  std::map<std::uintptr_t, Buffer> buffers_;  ///< by begin; the handle is the address of the entry
  std::atomic<std::size_t> count_{0};
  std::uint32_t last_number_ = 0;
};

}  // namespace tutti
