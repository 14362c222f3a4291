#include "tools/cuda_emulator/runtime/handles.h"

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {
namespace {

// Tables outlive the streams' threads, so none is ever destroyed.
template <class Table>
Table& everlasting() {
  static auto* const table = new Table;
  return *table;
}

}  // namespace

HandleTable<cudaStream_t, Stream>& streamHandles() {
  return everlasting<HandleTable<cudaStream_t, Stream>>();
}

HandleTable<cudaEvent_t, Event>& eventHandles() { return everlasting<HandleTable<cudaEvent_t, Event>>(); }

HandleTable<cudaGraph_t, Graph>& graphHandles() { return everlasting<HandleTable<cudaGraph_t, Graph>>(); }

HandleTable<cudaGraphExec_t, ExecutableGraph>& executableGraphHandles() {
  return everlasting<HandleTable<cudaGraphExec_t, ExecutableGraph>>();
}

HandleTable<cudaGraphNode_t, NodeReference>& nodeHandles() {
  return everlasting<HandleTable<cudaGraphNode_t, NodeReference>>();
}

HandleTable<cudaUserObject_t, UserReferences>& userObjectHandles() {
  return everlasting<HandleTable<cudaUserObject_t, UserReferences>>();
}

HandleTable<cudaMemPool_t, MemoryPool>& poolHandles() {
  return everlasting<HandleTable<cudaMemPool_t, MemoryPool>>();
}

void forgetHandlesOf(const Device& device) {
  streamHandles().removeIf([&](const Stream& stream) { return &stream.device() == &device; });
  eventHandles().removeIf([&](const Event& event) { return &event.device() == &device; });
}

StreamPtr streamOf(cudaStream_t handle) {
  auto& device = currentDevice();
  if (handle == nullptr || handle == cudaStreamLegacy) return device.streams().legacy();
  if (handle != cudaStreamPerThread) return streamHandles().get(handle);
  auto& stream = threadState().streams.by_device[device.index()];
  if (stream == nullptr || stream->closed()) {
    stream = device.streams().create({.kind = StreamTraits::Kind::per_thread, .flags = 0, .priority = 0});
  }
  return stream;
}

}  // namespace tutti::emulator
