// Entry points: allocating memory, asking about it, and sharing it.
#include <cuda_runtime_api.h>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/ipc.h"
#include "tools/cuda_emulator/runtime/memory.h"
#include "tools/cuda_emulator/runtime/settings.h"

using namespace tutti::emulator;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return call([&] {
    require(pointer != nullptr, cudaErrorInvalidValue);
    captures().requireSafe();
    *pointer = allocateOn(currentDevice(), bytes, MemoryKind::device);
  });
}

cudaError_t cudaFree(void* pointer) {
  return release([&] {
    captures().requireSafe();
    freeOnDevice(pointer);
    requireUsable();
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return call([&] {
    require(pointer != nullptr && bytes > 0, cudaErrorInvalidValue);
    require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost, cudaErrorInvalidValue);
    captures().requireSafe();
    *pointer = allocateOn(currentDevice(), bytes, MemoryKind::managed);
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call([&] {
    require(pointer != nullptr && pitch != nullptr, cudaErrorInvalidValue);
    captures().requireSafe();
    *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    *pointer = allocateOn(currentDevice(), *pitch * height, MemoryKind::device);
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  return call([&] {
    require(pointer != nullptr && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    captures().requireSafe();
    *pointer = allocatePinned(bytes, flags);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

cudaError_t cudaFreeHost(void* pointer) {
  return release([&] {
    captures().requireSafe();
    freePinned(pointer);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  return call([&] {
    require((flags & ~kKnown) == 0, cudaErrorInvalidValue);
    captures().requireSafe();
    registerHost(pointer, bytes, flags);
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return release([&] {
    captures().requireSafe();
    unregisterHost(pointer);
  });
}

cudaError_t cudaHostGetDevicePointer(void** result, void* pointer, unsigned flags) {
  return call([&] {
    require(result != nullptr && flags == 0, cudaErrorInvalidValue);
    const auto found = memoryMap().find(pointer);
    require(found && found->onHost(), cudaErrorInvalidValue);
    *result = pointer;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call([&] {
    const auto found = memoryMap().find(pointer);
    require(flags != nullptr && found && found->kind == MemoryKind::pinned, cudaErrorInvalidValue);
    *flags = found->flags | cudaHostAllocMapped;  // all pinned memory is, with unified addressing
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return call([&] {
    require(free_bytes != nullptr && total_bytes != nullptr, cudaErrorInvalidValue);
    *free_bytes = currentDevice().freeMemory();
    *total_bytes = settings().device_bytes;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call([&] {
    require(attributes != nullptr, cudaErrorInvalidValue);
    *attributes = attributesOf(pointer);
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return call([&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    *handle = exportMemory(pointer);
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  return call([&] {
    require(pointer != nullptr, cudaErrorInvalidValue);
    captures().requireSafe();
    *pointer = importMemory(handle, flags);
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return release([&] {
    captures().requireSafe();
    closeImport(pointer);
  });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* /*handle*/, cudaEvent_t /*event*/) {
  return call([] { notEmulated("cudaIpcGetEventHandle"); });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* /*event*/, cudaIpcEventHandle_t /*handle*/) {
  return call([] { notEmulated("cudaIpcOpenEventHandle"); });
}
