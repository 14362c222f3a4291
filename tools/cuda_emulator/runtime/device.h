// The emulated devices of this process.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "tools/cuda_emulator/runtime/stream_set.h"

namespace tutti::emulator {

inline constexpr int kPciDomain = 0xe000;
inline constexpr int kFirstPciBus = 1;

/// Lives until the process ends. Thread-safe.
class Device {
 public:
  /// `index`: CUDA's number for it in this process; `number`: on the machine.
  Device(int index, int number);

  int index() const { return index_; }
  int number() const { return number_; }
  cudaUUID_t uuid() const;
  /// "e000:01:00.0": a domain that no real bus has here, so that nobody takes it for one.
  std::string busId() const;
  StreamSet& streams() { return streams_; }

  /// Takes memory out of the device's, which is counted for each process by itself. Throws
  /// cudaErrorMemoryAllocation.
  void takeMemory(std::size_t bytes);
  void giveMemory(std::size_t bytes);
  std::size_t freeMemory() const;

  /// A kernel failed: until a reset all calls return `code`, and kernels that run end. The first failure
  /// counts; `why` is told.
  void fail(cudaError_t code, const std::string& why);
  cudaError_t fault() const { return fault_.load(std::memory_order_acquire); }
  /// Ends kernels once the device has failed.
  std::stop_token failed() const;
  /// Forgets the fault and the peers. Streams are closed; what they still do goes on.
  void reset();

  /// From the first call on that chose the device or worked on it, until a reset: CUDA's primary context,
  /// which takes hundreds of megabytes of a real one.
  void initialize() { is_initialized_ = true; }
  bool isInitialized() const { return is_initialized_; }

  bool canAccess(const Device& peer) const;
  void enablePeer(const Device& peer);
  void disablePeer(const Device& peer);

 private:
  const int index_;
  const int number_;
  StreamSet streams_;
  std::atomic<std::size_t> used_bytes_{0};
  std::atomic<cudaError_t> fault_{cudaSuccess};
  std::atomic<bool> is_initialized_{false};
  mutable std::mutex mutex_;
  std::stop_source failure_;
  std::set<int> peers_;
};

int deviceCount();
/// Throws cudaErrorInvalidDevice.
Device& device(int index);
/// This thread's. Throws cudaErrorNoDevice.
Device& currentDevice();

}  // namespace tutti::emulator
