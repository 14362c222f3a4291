// Entry points: graphs.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/copy.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/graph.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/launch.h"
#include "tools/cuda_emulator/runtime/settings.h"

using namespace tutti::emulator;

namespace {

std::shared_ptr<Graph> graphOf(cudaGraph_t handle) {
  return graphHandles().get(handle, cudaErrorInvalidValue);
}

std::shared_ptr<ExecutableGraph> executableOf(cudaGraphExec_t handle) {
  return executableGraphHandles().get(handle, cudaErrorInvalidValue);
}

cudaGraphNode_t addNode(cudaGraph_t graph_handle, const cudaGraphNode_t* dependencies, size_t count,
                        const Operation& operation) {
  const auto graph = graphOf(graph_handle);
  std::vector<size_t> indices;
  indices.reserve(count);
  for (size_t index = 0; index < count; ++index) indices.push_back(graph->indexOf(dependencies[index]));
  return graph->handle(graph->add(operation, std::move(indices)));
}

/// Copies handles out, as the calls that list nodes do: `count` is the room, then what was written; without
/// `nodes`, what there is.
void listNodes(Graph& graph, const std::vector<size_t>& indices, cudaGraphNode_t* nodes, size_t* count) {
  require(count != nullptr, cudaErrorInvalidValue);
  if (nodes != nullptr) {
    for (size_t at = 0; at < *count; ++at)
      nodes[at] = at < indices.size() ? graph.handle(indices[at]) : nullptr;
  }
  *count = nodes != nullptr ? std::min(*count, indices.size()) : indices.size();
}

}  // namespace

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return call([&] {
    require(graph != nullptr && flags == 0, cudaErrorInvalidValue);
    *graph = graphHandles().add(std::make_shared<Graph>());
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return release([&] { graphHandles().remove(graph, cudaErrorInvalidValue); });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  return call([&] {
    require(node != nullptr, cudaErrorInvalidValue);
    *node = addNode(graph, dependencies, count, plainOperation(cudaGraphNodeTypeEmpty, [] {}));
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* params) {
  return call([&] {
    require(node != nullptr && params != nullptr && params->fn != nullptr, cudaErrorInvalidValue);
    require(settings().host_nodes, cudaErrorNotSupported);
    *node = addNode(graph, dependencies, count, hostOperation(currentDevice(), params->fn, params->userData));
  });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* params) {
  return call([&] {
    require(node != nullptr && params != nullptr, cudaErrorInvalidValue);
    const LaunchRequest request{params->gridDim, params->blockDim, params->sharedMemBytes, false,
                                params->kernelParams};
    *node = addNode(graph, dependencies, count,
                    kernelOperation(currentDevice(), *program().function(params->func), request));
  });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* target,
                                     const void* source, size_t bytes, cudaMemcpyKind kind) {
  return call([&] {
    require(node != nullptr, cudaErrorInvalidValue);
    *node = addNode(graph, dependencies, count, copyNode(plainCopy(target, source, bytes, kind)));
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* params) {
  return call([&] {
    require(node != nullptr && params != nullptr, cudaErrorInvalidValue);
    *node = addNode(graph, dependencies, count,
                    fillNode(params->dst, params->pitch, params->value, params->elementSize,
                             {params->width * params->elementSize, params->height}));
  });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
  return call([&] {
    require(node != nullptr, cudaErrorInvalidValue);
    *node = addNode(graph, dependencies, count,
                    recordOperation(eventHandles().get(event, cudaErrorInvalidValue)));
  });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count, cudaEvent_t event) {
  return call([&] {
    require(node != nullptr, cudaErrorInvalidValue);
    *node =
        addNode(graph, dependencies, count, waitOperation(eventHandles().get(event, cudaErrorInvalidValue)));
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return call([&] {
    const auto graph = graphOf(handle);
    std::vector<size_t> indices(graph->size());
    for (size_t index = 0; index < indices.size(); ++index) indices[index] = index;
    listNodes(*graph, indices, nodes, count);
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return call([&] {
    const auto graph = graphOf(handle);
    const auto all = graph->nodes();
    std::vector<size_t> indices;
    for (size_t index = 0; index < all.size(); ++index) {
      if (all[index].dependencies.empty()) indices.push_back(index);
    }
    listNodes(*graph, indices, nodes, count);
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call([&] {
    require(type != nullptr, cudaErrorInvalidValue);
    const auto reference = nodeHandles().get(node, cudaErrorInvalidValue);
    *type = reference->graph->nodes().at(reference->index).operation.type;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  return call([&] {
    require(executable != nullptr, cudaErrorInvalidValue);
    *executable = executableGraphHandles().add(std::make_shared<ExecutableGraph>(*graphOf(graph)));
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  return call([&] {
    require(executable != nullptr && params != nullptr, cudaErrorInvalidValue);
    params->errNode_out = nullptr;
    params->result_out = cudaGraphInstantiateError;
    *executable = executableGraphHandles().add(std::make_shared<ExecutableGraph>(*graphOf(graph)));
    params->result_out = cudaGraphInstantiateSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return release([&] { executableGraphHandles().remove(executable, cudaErrorInvalidValue); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return call([&] {
    const bool updated = executableOf(executable)->update(*graphOf(graph));
    if (info != nullptr) {
      *info = {};
      info->result = updated ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    }
    require(updated, cudaErrorGraphExecUpdateFailure);
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&] {
    executableOf(executable);
    streamOf(stream);
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&] { submit(streamOf(stream), executableOf(executable)->launch()); });
}
