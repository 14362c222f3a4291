#include "tools/cuda_emulator/runtime/memory.h"

#include <utility>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/memory_pool.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {
namespace {

/// What overlaps new pages is memory that a program registered and unmapped.
void addNew(const Allocation& allocation) {
  require(memoryMap().add(allocation), cudaErrorHostMemoryAlreadyRegistered);
}

bool paidByDevice(MemoryKind kind) {
  return kind == MemoryKind::device || kind == MemoryKind::pool || kind == MemoryKind::managed;
}

std::byte* allocatePaid(Device& device, std::size_t bytes, MemoryKind kind,
                        std::shared_ptr<MemoryPool> pool) {
  if (bytes == 0) return nullptr;
  device.takeMemory(bytes);
  try {
    auto mapping = Mapping::create(bytes);
    if (kind != MemoryKind::device) mapping->closeFd();
    auto* const base = mapping->base();
    addNew({base, bytes, kind, device.index(), 0, std::move(mapping), std::move(pool)});
    return base;
  } catch (...) {
    device.giveMemory(bytes);
    throw;
  }
}

/// All of them may use host memory.
void waitForAllDevices() {
  for (int index = 0; index < deviceCount(); ++index) device(index).streams().synchronize();
}

/// The allocation's mapping goes with its last owner, which may be work that is under way.
void giveBack(const Allocation& allocation) {
  if (paidByDevice(allocation.kind)) device(allocation.device).giveMemory(allocation.bytes);
  if (allocation.pool != nullptr) allocation.pool->give(allocation.bytes);
}

}  // namespace

std::byte* allocateOn(Device& device, std::size_t bytes, MemoryKind kind) {
  return allocatePaid(device, bytes, kind, nullptr);
}

std::byte* allocateFrom(const std::shared_ptr<MemoryPool>& pool, std::size_t bytes) {
  auto* const result = allocatePaid(pool->device(), bytes, MemoryKind::pool, pool);
  if (result != nullptr) pool->take(bytes);
  return result;
}

std::byte* allocatePinned(std::size_t bytes, unsigned flags) {
  if (bytes == 0) return nullptr;
  auto mapping = Mapping::create(bytes);
  mapping->closeFd();
  auto* const base = mapping->base();
  addNew({base, bytes, MemoryKind::pinned, threadState().device, flags, std::move(mapping)});
  return base;
}

void freeOnDevice(void* base) {
  if (base == nullptr) return;
  const auto found = memoryMap().find(base);
  require(found && paidByDevice(found->kind) && found->base == base, cudaErrorInvalidValue);
  device(found->device).streams().synchronize();
  const auto removed = memoryMap().remove(base, {MemoryKind::device, MemoryKind::pool, MemoryKind::managed});
  require(removed.has_value(), cudaErrorInvalidValue);  // another thread was faster
  giveBack(*removed);
}

void freePinned(void* base) {
  if (base == nullptr) return;
  const auto found = memoryMap().find(base);
  require(found && found->kind == MemoryKind::pinned && found->base == base, cudaErrorInvalidValue);
  waitForAllDevices();
  require(memoryMap().remove(base, {MemoryKind::pinned}).has_value(), cudaErrorInvalidValue);
}

void freePool(void* base) {
  if (const auto removed = memoryMap().remove(base, {MemoryKind::pool})) giveBack(*removed);
}

void registerHost(void* base, std::size_t bytes, unsigned flags) {
  require(base != nullptr && bytes > 0, cudaErrorInvalidValue);
  const bool added = memoryMap().add(
      {static_cast<std::byte*>(base), bytes, MemoryKind::registered, threadState().device, flags, nullptr});
  require(added, cudaErrorHostMemoryAlreadyRegistered);
}

void unregisterHost(void* base) {
  require(base != nullptr, cudaErrorInvalidValue);
  const auto found = memoryMap().find(base);
  if (found && found->kind == MemoryKind::registered) waitForAllDevices();
  require(memoryMap().remove(base, {MemoryKind::registered}).has_value(), cudaErrorHostMemoryNotRegistered);
}

void freeAllOf(Device& device) {
  for (const auto& allocation : memoryMap().ofDevice(device.index())) {
    if (allocation.kind == MemoryKind::variable || allocation.kind == MemoryKind::imported) continue;
    if (memoryMap().remove(allocation.base, {allocation.kind})) giveBack(allocation);
  }
}

cudaPointerAttributes attributesOf(const void* address) {
  cudaPointerAttributes result{};
  const auto found = memoryMap().find(address);
  auto* const pointer = const_cast<void*>(address);
  if (!found) {
    result.type = cudaMemoryTypeUnregistered;
    result.device = cudaInvalidDeviceId;
    result.hostPointer = pointer;
    return result;
  }
  result.type = found->onDevice() ? cudaMemoryTypeDevice
                : found->onHost() ? cudaMemoryTypeHost
                                  : cudaMemoryTypeManaged;
  result.device = found->device;
  result.devicePointer = pointer;
  if (!found->onDevice()) result.hostPointer = pointer;
  return result;
}

}  // namespace tutti::emulator
