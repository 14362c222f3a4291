// Entry points: boxes of pitched memory. Arrays, which textures read, are not there.
#include <cuda_runtime_api.h>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/copy.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/memory.h"

using namespace tutti::emulator;

namespace {

/// Row 0 of slice z of what begins at `position`.
std::byte* sliceOf(const cudaPitchedPtr& memory, const cudaPos& position, size_t z) {
  return static_cast<std::byte*>(memory.ptr) + ((position.z + z) * memory.ysize + position.y) * memory.pitch +
         position.x;
}

/// Calls copy(request) for each slice.
template <class Copy>
void copyBox(const cudaMemcpy3DParms* box, const Copy& copy) {
  require(box != nullptr, cudaErrorInvalidValue);
  if (box->srcArray != nullptr || box->dstArray != nullptr) notEmulated("cudaMemcpy3D with arrays");
  require(box->srcPtr.ptr != nullptr && box->dstPtr.ptr != nullptr, cudaErrorInvalidValue);
  for (size_t z = 0; z < box->extent.depth; ++z) {
    copy(CopyRequest{sliceOf(box->dstPtr, box->dstPos, z),
                     sliceOf(box->srcPtr, box->srcPos, z),
                     box->dstPtr.pitch,
                     box->srcPtr.pitch,
                     {box->extent.width, box->extent.height},
                     box->kind});
  }
}

template <class Fill>
void fillBox(const cudaPitchedPtr& memory, const cudaExtent& extent, const Fill& fill) {
  for (size_t z = 0; z < extent.depth; ++z) fill(sliceOf(memory, {}, z), Rows{extent.width, extent.height});
}

}  // namespace

cudaError_t cudaMalloc3D(cudaPitchedPtr* result, cudaExtent extent) {
  return call([&] {
    require(result != nullptr, cudaErrorInvalidValue);
    captures().requireSafe();
    const auto pitch = (extent.width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    void* const memory =
        allocateOn(currentDevice(), pitch * extent.height * extent.depth, MemoryKind::device);
    *result = {memory, pitch, extent.width, extent.height};
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* box) {
  return call([&] { copyBox(box, copyNow); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* box, cudaStream_t stream) {
  return call([&] { copyBox(box, [&](const CopyRequest& slice) { copyAsync(slice, stream); }); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return call([&] {
    fillBox(memory, extent, [&](void* slice, Rows rows) { fillNow(slice, memory.pitch, value, rows); });
  });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
  return call([&] {
    fillBox(memory, extent,
            [&](void* slice, Rows rows) { fillAsync(slice, memory.pitch, value, rows, stream); });
  });
}
