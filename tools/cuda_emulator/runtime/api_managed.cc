// Entry points: advice about memory that host and devices share. It is where it is here; calls are checked,
// and pass.
#include <cuda_runtime_api.h>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/memory_map.h"

using namespace tutti::emulator;

namespace {

void requireManaged(const void* pointer, size_t count) {
  const auto found = memoryMap().find(pointer);
  require(found && found->kind == MemoryKind::managed && found->holds(pointer, count), cudaErrorInvalidValue);
}

void requirePlace(const cudaMemLocation& location) {
  if (location.type == cudaMemLocationTypeDevice) {
    device(location.id);
    return;
  }
  const bool host = location.type == cudaMemLocationTypeHost ||
                    location.type == cudaMemLocationTypeHostNuma ||
                    location.type == cudaMemLocationTypeHostNumaCurrent;
  require(host, cudaErrorInvalidValue);
}

}  // namespace

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
  return call([&] {
    require(flags == 0 && count > 0, cudaErrorInvalidValue);
    requireManaged(pointer, count);
    requirePlace(location);
    captures().requireNotCapturing(*streamOf(stream));
  });
}

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  return call([&] {
    require(advice >= cudaMemAdviseSetReadMostly && advice <= cudaMemAdviseUnsetAccessedBy,
            cudaErrorInvalidValue);
    requireManaged(pointer, count);
    const bool about_reading = advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly;
    if (!about_reading && advice != cudaMemAdviseUnsetPreferredLocation) requirePlace(location);
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t /*length*/, unsigned flags) {
  return call([&] {
    require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle,
            cudaErrorInvalidValue);
    requireManaged(pointer, 0);
    streamOf(stream);
  });
}
