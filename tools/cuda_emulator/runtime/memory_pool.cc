#include "tools/cuda_emulator/runtime/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"

namespace tutti::emulator {
namespace {

struct PoolsOfDevice {
  cudaMemPool_t own = nullptr;
  cudaMemPool_t current = nullptr;
};

struct Pools {
  std::mutex mutex;
  std::vector<PoolsOfDevice> of_device;

  PoolsOfDevice& of(const Device& which) {
    const auto index = static_cast<std::size_t>(which.index());
    if (of_device.size() <= index) of_device.resize(index + 1);
    auto& result = of_device[index];
    if (result.own == nullptr) {
      result.own = poolHandles().add(std::make_shared<MemoryPool>(device(which.index())));
      result.current = result.own;
    }
    return result;
  }
};

Pools& pools() {
  static auto* const result = new Pools;
  return *result;
}

template <class T>
void put(void* value, T number) {
  std::memcpy(value, &number, sizeof number);
}

template <class T>
T taken(const void* value) {
  T number;
  std::memcpy(&number, value, sizeof number);
  return number;
}

/// Which of the three, where the attribute is about reuse; else -1.
int reuseIndex(cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      return 0;
    case cudaMemPoolReuseAllowOpportunistic:
      return 1;
    case cudaMemPoolReuseAllowInternalDependencies:
      return 2;
    default:
      return -1;
  }
}

}  // namespace

void MemoryPool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ += bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
}

void MemoryPool::give(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= bytes;
}

void MemoryPool::set(cudaMemPoolAttr attribute, const void* value) {
  require(value != nullptr, cudaErrorInvalidValue);
  const std::lock_guard lock(mutex_);
  if (const int index = reuseIndex(attribute); index >= 0) {
    reuse_[index] = taken<int>(value);
  } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
    release_threshold_ = taken<std::uint64_t>(value);
  } else {
    // The high marks can be set back, and nothing else be set.
    const bool mark = attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
    require(mark && taken<std::uint64_t>(value) == 0, cudaErrorInvalidValue);
    most_used_bytes_ = used_bytes_;
  }
}

void MemoryPool::get(cudaMemPoolAttr attribute, void* value) const {
  require(value != nullptr, cudaErrorInvalidValue);
  const std::lock_guard lock(mutex_);
  if (const int index = reuseIndex(attribute); index >= 0) return put(value, reuse_[index]);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return put(value, release_threshold_);
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      return put(value, used_bytes_);
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      return put(value, most_used_bytes_);
    default:
      throw CudaError(cudaErrorInvalidValue);
  }
}

cudaMemPool_t defaultPoolOf(const Device& device) {
  const std::lock_guard lock(pools().mutex);
  return pools().of(device).own;
}

cudaMemPool_t currentPoolOf(const Device& device) {
  const std::lock_guard lock(pools().mutex);
  return pools().of(device).current;
}

void setCurrentPool(const Device& device, cudaMemPool_t pool) {
  require(&poolHandles().get(pool, cudaErrorInvalidValue)->device() == &device, cudaErrorInvalidValue);
  const std::lock_guard lock(pools().mutex);
  pools().of(device).current = pool;
}

void destroyPool(cudaMemPool_t pool) {
  const auto found = poolHandles().get(pool, cudaErrorInvalidValue);
  const std::lock_guard lock(pools().mutex);
  auto& of_device = pools().of(found->device());
  require(of_device.own != pool, cudaErrorInvalidValue);
  if (of_device.current == pool) of_device.current = of_device.own;
  poolHandles().remove(pool, cudaErrorInvalidValue);
}

}  // namespace tutti::emulator
