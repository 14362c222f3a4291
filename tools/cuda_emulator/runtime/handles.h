// The handles that this process has given out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/cuda_emulator/runtime/event.h"
#include "tools/cuda_emulator/runtime/handle_table.h"
#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {

class Device;
class Graph;
class ExecutableGraph;
class MemoryPool;
class UserReferences;

struct NodeReference {
  const Graph* graph = nullptr;  ///< which takes the handle back before it goes
  std::size_t index = 0;
};

HandleTable<cudaStream_t, Stream>& streamHandles();
HandleTable<cudaEvent_t, Event>& eventHandles();
HandleTable<cudaGraph_t, Graph>& graphHandles();
HandleTable<cudaGraphExec_t, ExecutableGraph>& executableGraphHandles();
HandleTable<cudaGraphNode_t, NodeReference>& nodeHandles();
HandleTable<cudaMemPool_t, MemoryPool>& poolHandles();
HandleTable<cudaUserObject_t, UserReferences>& userObjectHandles();

/// Those of the device's streams and events are not valid any more.
void forgetHandlesOf(const Device& device);

/// Also the default streams: 0 and cudaStreamLegacy of the current device, cudaStreamPerThread of this thread
/// and device. Throws cudaErrorInvalidResourceHandle.
StreamPtr streamOf(cudaStream_t handle);

}  // namespace tutti::emulator
