// Entry points: stream capture.
#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

using namespace tutti::emulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&] { captures().begin(streamOf(stream), mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    require(graph != nullptr, cudaErrorInvalidValue);
    *graph = nullptr;
    *graph = captures().end(streamOf(stream));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call([&] {
    require(status != nullptr, cudaErrorInvalidValue);
    const auto stream = streamOf(handle);
    if (stream->isLegacy()) captures().requireNoneBlocking(stream->device());
    *status = captures().info(stream).status;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  return call([&] {
    require(status != nullptr, cudaErrorInvalidValue);
    const auto stream = streamOf(handle);
    if (stream->isLegacy()) captures().requireNoneBlocking(stream->device());
    const auto info = captures().info(stream);
    *status = info.status;
    if (info.status != cudaStreamCaptureStatusActive) return;
    if (id != nullptr) *id = info.id;
    if (graph != nullptr) *graph = info.graph;
    if (dependencies != nullptr) *dependencies = info.tips->data();
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = info.tips->size();
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* /*edges*/, size_t count,
                                                unsigned flags) {
  return call([&] {
    require(flags == cudaStreamAddCaptureDependencies || flags == cudaStreamSetCaptureDependencies,
            cudaErrorInvalidValue);
    require(nodes != nullptr || count == 0, cudaErrorInvalidValue);
    captures().setTips(streamOf(stream), {nodes, nodes + count}, flags == cudaStreamAddCaptureDependencies);
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&] {
    require(mode != nullptr && *mode >= cudaStreamCaptureModeGlobal && *mode <= cudaStreamCaptureModeRelaxed,
            cudaErrorInvalidValue);
    *mode = std::exchange(threadState().capture_mode, *mode);
  });
}
