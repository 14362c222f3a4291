// Entry points: objects of the program that graphs keep.
#include <cuda_runtime_api.h>

#include <memory>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/graph.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/user_object.h"

using namespace tutti::emulator;

namespace {

std::shared_ptr<UserReferences> referencesOf(cudaUserObject_t handle) {
  return userObjectHandles().get(handle, cudaErrorInvalidValue);
}

/// The handle ends with the program's last reference; graphs need none.
void drop(cudaUserObject_t handle, unsigned count) {
  if (referencesOf(handle)->drop(count)) userObjectHandles().remove(handle, cudaErrorInvalidValue);
}

}  // namespace

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy, unsigned count,
                                 unsigned flags) {
  return call([&] {
    require(object != nullptr && destroy != nullptr && count > 0 && flags == cudaUserObjectNoDestructorSync,
            cudaErrorInvalidValue);
    *object = userObjectHandles().add(
        std::make_shared<UserReferences>(std::make_shared<UserObject>(data, destroy), count));
  });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return call([&] { referencesOf(object)->add(count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return release([&] { drop(object, count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  return call([&] {
    require(count > 0 && (flags == 0 || flags == cudaGraphUserObjectMove), cudaErrorInvalidValue);
    graphHandles().get(graph, cudaErrorInvalidValue)->keep(referencesOf(object)->object(), count);
    if (flags == cudaGraphUserObjectMove) drop(object, count);
  });
}
