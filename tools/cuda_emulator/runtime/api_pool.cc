// Entry points: memory in the order of a stream, and the pools that it comes from.
#include <cuda_runtime_api.h>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/memory.h"
#include "tools/cuda_emulator/runtime/memory_pool.h"

using namespace tutti::emulator;

namespace {

std::shared_ptr<MemoryPool> poolOf(cudaMemPool_t handle) {
  return poolHandles().get(handle, cudaErrorInvalidValue);
}

Device& deviceAt(const cudaMemLocation* location) {
  require(location != nullptr && location->type == cudaMemLocationTypeDevice, cudaErrorInvalidValue);
  return device(location->id);
}

/// From the pool of the stream's device where none is named.
void* allocateInOrder(size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  const auto target = streamOf(stream);
  captures().requireNotCapturing(*target);
  return allocateFrom(poolOf(pool != nullptr ? pool : currentPoolOf(target->device())), bytes);
}

}  // namespace

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return call([&] {
    require(pointer != nullptr, cudaErrorInvalidValue);
    *pointer = allocateInOrder(bytes, nullptr, stream);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return call([&] {
    require(pointer != nullptr && pool != nullptr, cudaErrorInvalidValue);
    *pointer = allocateInOrder(bytes, pool, stream);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call([&] {
    const auto target = streamOf(stream);
    captures().requireNotCapturing(*target);
    const auto found = memoryMap().find(pointer);
    require(found && found->kind == MemoryKind::pool && found->base == pointer, cudaErrorInvalidValue);
    submit(target, plainOperation(cudaGraphNodeTypeMemFree, [pointer] { freePool(pointer); }));
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int index) {
  return call([&] {
    require(pool != nullptr, cudaErrorInvalidValue);
    *pool = defaultPoolOf(device(index));
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int index) {
  return call([&] {
    require(pool != nullptr, cudaErrorInvalidValue);
    *pool = currentPoolOf(device(index));
  });
}

cudaError_t cudaDeviceSetMemPool(int index, cudaMemPool_t pool) {
  return call([&] { setCurrentPool(device(index), pool); });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  return call([&] {
    require(pool != nullptr && type == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    *pool = defaultPoolOf(deviceAt(location));
  });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return call([&] {
    require(pool != nullptr && type == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    *pool = currentPoolOf(deviceAt(location));
  });
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return call([&] {
    require(type == cudaMemAllocationTypePinned, cudaErrorInvalidValue);
    setCurrentPool(deviceAt(location), pool);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call([&] {
    require(pool != nullptr && properties != nullptr && properties->allocType == cudaMemAllocationTypePinned,
            cudaErrorInvalidValue);
    if (properties->handleTypes != cudaMemHandleTypeNone)
      notEmulated("cudaMemPoolCreate with handles to share");
    *pool = poolHandles().add(std::make_shared<MemoryPool>(deviceAt(&properties->location)));
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call([&] { destroyPool(pool); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call([&] { poolOf(pool)->set(attribute, value); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call([&] { poolOf(pool)->get(attribute, value); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t /*bytes_to_keep*/) {
  return call([&] { poolOf(pool); });
}

// A peer's memory is reachable here whatever was said.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count) {
  return call([&] {
    const auto& own = poolOf(pool)->device();
    require(accesses != nullptr || count == 0, cudaErrorInvalidValue);
    for (size_t index = 0; index < count; ++index) {
      const auto& peer = deviceAt(&accesses[index].location);
      require(&peer == &own || peer.canAccess(own), cudaErrorInvalidDevice);
    }
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return call([&] {
    require(flags != nullptr, cudaErrorInvalidValue);
    const auto& own = poolOf(pool)->device();
    const auto& peer = deviceAt(location);
    *flags =
        &peer == &own || peer.canAccess(own) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  });
}
