// Entry points: events.
#include <cuda_runtime_api.h>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"

using namespace tutti::emulator;

namespace {

/// What a host waits for. nullptr: nothing was recorded. A captured event cannot be waited for or asked
/// about.
CompletionPtr recordOf(const Event& event) {
  captures().requireSafe();
  if (const auto point = event.captured()) captures().invalidate(*point);
  return event.record();
}

void requireNoFault(const Event& event) {
  const auto fault = event.device().fault();
  require(fault == cudaSuccess, fault);
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  return call([&] {
    require(event != nullptr && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    const bool shared_and_timed =
        (flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0;
    require(!shared_and_timed, cudaErrorInvalidValue);
    *event = eventHandles().add(std::make_shared<Event>(currentDevice(), flags));
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return release([&] { eventHandles().remove(event); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  return call([&] {
    require(flags == cudaEventRecordDefault || flags == cudaEventRecordExternal, cudaErrorInvalidValue);
    const auto event = eventHandles().get(handle);
    const auto stream = streamOf(stream_handle);
    require(&event->device() == &stream->device(), cudaErrorInvalidResourceHandle);
    if (captures().record(stream, event, flags == cudaEventRecordExternal)) return;
    submit(stream, recordOperation(event));
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call([&] {
    const auto event = eventHandles().get(handle);
    const auto record = recordOf(*event);
    require(record == nullptr || record->done(), cudaErrorNotReady);
    requireNoFault(*event);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call([&] {
    const auto event = eventHandles().get(handle);
    const auto record = recordOf(*event);
    if (record != nullptr) record->wait();
    requireNoFault(*event);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call([&] {
    require(milliseconds != nullptr, cudaErrorInvalidValue);
    *milliseconds = millisecondsBetween(*eventHandles().get(start), *eventHandles().get(end));
  });
}
