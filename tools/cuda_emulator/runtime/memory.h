// Allocating, registering and giving back memory.
#pragma once

#include <cstddef>
#include <memory>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/memory_map.h"

namespace tutti::emulator {

/// New memory of a kind that the device's budget pays for (device, managed). 0 bytes: nullptr. Throws
/// cudaErrorMemoryAllocation.
std::byte* allocateOn(Device& device, std::size_t bytes, MemoryKind kind);
/// The same out of a pool (kind pool), of its device.
std::byte* allocateFrom(const std::shared_ptr<MemoryPool>& pool, std::size_t bytes);
/// New pinned host memory.
std::byte* allocatePinned(std::size_t bytes, unsigned flags);
/// Once nothing on its device is under way. nullptr is nothing. Throws cudaErrorInvalidValue for any other
/// address than one that such an allocation returned.
void freeOnDevice(void* base);
void freePinned(void* base);
/// What was allocated by allocateFrom, at once: the caller keeps the order.
void freePool(void* base);

void registerHost(void* base, std::size_t bytes, unsigned flags);
/// Once nothing on any device is under way.
void unregisterHost(void* base);

/// Frees all that was allocated on `device`, and forgets what was registered there.
void freeAllOf(Device& device);

cudaPointerAttributes attributesOf(const void* address);

}  // namespace tutti::emulator
