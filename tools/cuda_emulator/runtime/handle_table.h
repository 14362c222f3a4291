// Handles that a program holds, such as cudaStream_t, and the objects behind them.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "tools/cuda_emulator/runtime/error.h"

namespace tutti::emulator {

/// A handle is a number that is never given out twice, so that one which was destroyed is known as such. It
/// looks like a pointer and must not be followed. Thread-safe.
template <class Handle, class Object>
class HandleTable {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const std::unique_lock lock(mutex_);
    next_ += 16;
    objects_.emplace(next_, std::move(object));
    return std::bit_cast<Handle>(next_);
  }

  /// Throws `otherwise` where there is none.
  std::shared_ptr<Object> get(Handle handle, cudaError_t otherwise = cudaErrorInvalidResourceHandle) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(std::bit_cast<std::uintptr_t>(handle));
    require(found != objects_.end(), otherwise);
    return found->second;
  }

  std::shared_ptr<Object> remove(Handle handle, cudaError_t otherwise = cudaErrorInvalidResourceHandle) {
    const std::unique_lock lock(mutex_);
    const auto node = objects_.extract(std::bit_cast<std::uintptr_t>(handle));
    require(!node.empty(), otherwise);
    return node.mapped();
  }

  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return objects_.size();
  }

  template <class Predicate>
  void removeIf(const Predicate& predicate) {
    const std::unique_lock lock(mutex_);
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<Object>> objects_;
  std::uintptr_t next_ = 0x10000;  // above the handles that CUDA gives a meaning of their own
};

}  // namespace tutti::emulator
