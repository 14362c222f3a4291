// Entry points: streams.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/settings.h"

using namespace tutti::emulator;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&] {
    require(stream != nullptr && (flags == cudaStreamDefault || flags == cudaStreamNonBlocking),
            cudaErrorInvalidValue);
    *stream = streamHandles().add(currentDevice().streams().create(
        {StreamTraits::Kind::created, flags, std::clamp(priority, kGreatestPriority, 0)}));
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return release([&] {
    captures().requireNotCapturing(*streamHandles().get(handle));
    streamHandles().remove(handle)->close();
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call([&] {
    const auto stream = streamOf(handle);
    captures().requireNotCapturing(*stream);
    captures().requireSafe();
    require(stream->device().streams().idle(*stream), cudaErrorNotReady);
    requireUsable();
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call([&] {
    const auto stream = streamOf(handle);
    captures().requireNotCapturing(*stream);
    captures().requireSafe();
    stream->device().streams().synchronize(*stream);
    require(stream->device().fault() == cudaSuccess, stream->device().fault());
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
  return call([&] {
    require(flags == cudaEventWaitDefault || flags == cudaEventWaitExternal, cudaErrorInvalidValue);
    const auto stream = streamOf(handle);
    const auto event = eventHandles().get(event_handle);
    if (captures().wait(stream, event, flags == cudaEventWaitExternal)) return;
    submit(stream, waitOperation(event));
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* argument,
                                  unsigned flags) {
  return call([&] {
    require(callback != nullptr && flags == 0, cudaErrorInvalidValue);
    const auto stream = streamOf(handle);
    captures().requireNotCapturing(*stream);
    submit(stream, callbackOperation(stream->device(), handle, callback, argument));
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return call([&] {
    require(function != nullptr, cudaErrorInvalidValue);
    const auto stream = streamOf(handle);
    const bool becomes_node = captures().info(stream).status != cudaStreamCaptureStatusNone;
    require(settings().host_nodes || !becomes_node, cudaErrorNotSupported);
    submit(stream, hostOperation(stream->device(), function, argument));
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return call([&] {
    require(flags != nullptr, cudaErrorInvalidValue);
    *flags = streamOf(handle)->traits().flags;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return call([&] {
    require(priority != nullptr, cudaErrorInvalidValue);
    *priority = streamOf(handle)->traits().priority;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* index) {
  return call([&] {
    require(index != nullptr, cudaErrorInvalidValue);
    *index = streamOf(handle)->device().index();
  });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return call([&] {
    require(id != nullptr, cudaErrorInvalidValue);
    *id = streamOf(handle)->id();
  });
}

// What may be set makes a device faster at most.
cudaError_t cudaStreamSetAttribute(cudaStream_t handle, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  return call([&] {
    require(value != nullptr && attribute > cudaLaunchAttributeIgnore, cudaErrorInvalidValue);
    streamOf(handle);
  });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t handle, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  return call([&] {
    require(value != nullptr && attribute > cudaLaunchAttributeIgnore, cudaErrorInvalidValue);
    *value = {};
    const auto& traits = streamOf(handle)->traits();
    if (attribute == cudaLaunchAttributePriority) value->priority = traits.priority;
    if (attribute == cudaLaunchAttributeSynchronizationPolicy) value->syncPolicy = cudaSyncPolicyAuto;
  });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t target, cudaStream_t source) {
  return call([&] {
    streamOf(target);
    streamOf(source);
  });
}
