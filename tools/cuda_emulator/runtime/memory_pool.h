// Memory pools as programs see them: what cudaMallocAsync takes its memory from. Each allocation is made and
// given back by itself, so that a pool keeps nothing; its attributes are there to be set and read.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "tools/cuda_emulator/runtime/device.h"

namespace tutti::emulator {

/// Thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(Device& device) : device_(device) {}

  Device& device() const { return device_; }
  /// Counts what was allocated from it, and given back.
  void take(std::size_t bytes);
  void give(std::size_t bytes);

  /// `value` is what CUDA's documentation says of the attribute: an int or a std::uint64_t.
  void set(cudaMemPoolAttr attribute, const void* value);
  void get(cudaMemPoolAttr attribute, void* value) const;

 private:
  Device& device_;
  mutable std::mutex mutex_;
  std::uint64_t release_threshold_ = 0;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t most_used_bytes_ = 0;
  int reuse_[3] = {1, 1, 1};  // following events, opportunistically, by dependencies of its own
};

/// The pool that `device` began with.
cudaMemPool_t defaultPoolOf(const Device& device);
/// The pool that cudaMallocAsync takes now.
cudaMemPool_t currentPoolOf(const Device& device);
void setCurrentPool(const Device& device, cudaMemPool_t pool);
/// A device whose pool it was takes its default pool again. Throws cudaErrorInvalidValue for a default pool.
void destroyPool(cudaMemPool_t pool);

}  // namespace tutti::emulator
