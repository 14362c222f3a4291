// Entry points of programs built with `nvcc --default-stream per-thread`: the same functions under names of
// their own, in which stream 0 is the calling thread's.
#include <cuda_runtime_api.h>

namespace {

cudaStream_t own(cudaStream_t stream) { return stream != nullptr ? stream : cudaStreamPerThread; }

/// A copy that the caller waits for.
cudaError_t waited(cudaError_t queued, cudaMemcpyKind kind) {
  if (queued != cudaSuccess || kind == cudaMemcpyDeviceToDevice) return queued;
  return cudaStreamSynchronize(cudaStreamPerThread);
}

}  // namespace

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                          size_t shared_bytes, cudaStream_t stream);

/// NAME_ptsz(PARAMETERS, stream), which is NAME(ARGUMENTS, the stream or the thread's own).
#define TUTTI_LAST_STREAM(name, parameters, ...)                        \
  cudaError_t name##_ptsz(TUTTI_LIST parameters, cudaStream_t stream) { \
    return name(__VA_ARGS__, own(stream));                              \
  }
/// NAME_ptsz(stream, PARAMETERS).
#define TUTTI_FIRST_STREAM(name, parameters, ...)                       \
  cudaError_t name##_ptsz(cudaStream_t stream, TUTTI_LIST parameters) { \
    return name(own(stream), __VA_ARGS__);                              \
  }
#define TUTTI_LIST(...) __VA_ARGS__

extern "C" {
// Copying and filling.
TUTTI_LAST_STREAM(cudaMemcpyAsync, (void* to, const void* from, size_t n, cudaMemcpyKind kind), to, from, n,
                  kind)
TUTTI_LAST_STREAM(cudaMemcpy2DAsync,
                  (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                   size_t height, cudaMemcpyKind kind),
                  to, to_pitch, from, from_pitch, width, height, kind)
TUTTI_LAST_STREAM(cudaMemcpy3DAsync, (const cudaMemcpy3DParms* box), box)
TUTTI_LAST_STREAM(cudaMemcpyToSymbolAsync,
                  (const void* symbol, const void* from, size_t n, size_t offset, cudaMemcpyKind kind),
                  symbol, from, n, offset, kind)
TUTTI_LAST_STREAM(cudaMemcpyFromSymbolAsync,
                  (void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind), to, symbol, n,
                  offset, kind)
TUTTI_LAST_STREAM(cudaMemsetAsync, (void* to, int value, size_t n), to, value, n)
TUTTI_LAST_STREAM(cudaMemset2DAsync, (void* to, size_t pitch, int value, size_t width, size_t height), to,
                  pitch, value, width, height)
TUTTI_LAST_STREAM(cudaMemset3DAsync, (cudaPitchedPtr to, int value, cudaExtent extent), to, value, extent)

cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return waited(cudaMemcpyAsync(to, from, n, kind, cudaStreamPerThread), kind);
}
cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind) {
  return waited(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, cudaStreamPerThread),
                kind);
}
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* box) {
  return waited(cudaMemcpy3DAsync(box, cudaStreamPerThread), box != nullptr ? box->kind : cudaMemcpyDefault);
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t n, size_t offset,
                                    cudaMemcpyKind kind) {
  return waited(cudaMemcpyToSymbolAsync(symbol, from, n, offset, kind, cudaStreamPerThread), kind);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t n, size_t offset,
                                      cudaMemcpyKind kind) {
  return waited(cudaMemcpyFromSymbolAsync(to, symbol, n, offset, kind, cudaStreamPerThread), kind);
}
cudaError_t cudaMemset_ptds(void* to, int value, size_t n) {
  return cudaMemsetAsync(to, value, n, cudaStreamPerThread);
}
cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, cudaStreamPerThread);
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent extent) {
  return cudaMemset3DAsync(to, value, extent, cudaStreamPerThread);
}

// Memory in the order of a stream.
TUTTI_LAST_STREAM(cudaMallocAsync, (void** pointer, size_t n), pointer, n)
TUTTI_LAST_STREAM(cudaMallocFromPoolAsync, (void** pointer, size_t n, cudaMemPool_t pool), pointer, n, pool)
TUTTI_LAST_STREAM(cudaFreeAsync, (void* pointer), pointer)
TUTTI_LAST_STREAM(cudaMemPrefetchAsync,
                  (const void* pointer, size_t n, cudaMemLocation place, unsigned flags), pointer, n, place,
                  flags)
TUTTI_FIRST_STREAM(cudaStreamAttachMemAsync, (void* pointer, size_t n, unsigned flags), pointer, n, flags)

// Kernels, functions and graphs.
TUTTI_LAST_STREAM(__cudaLaunchKernel,
                  (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared), kernel, grid,
                  block, arguments, shared)
TUTTI_LAST_STREAM(cudaLaunchKernel,
                  (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared), kernel, grid,
                  block, arguments, shared)
TUTTI_LAST_STREAM(cudaLaunchCooperativeKernel,
                  (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared), kernel, grid,
                  block, arguments, shared)
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  if (config == nullptr) return cudaLaunchKernelExC(config, kernel, arguments);
  auto own_config = *config;
  own_config.stream = own(config->stream);
  return cudaLaunchKernelExC(&own_config, kernel, arguments);
}
TUTTI_FIRST_STREAM(cudaLaunchHostFunc, (cudaHostFn_t function, void* argument), function, argument)
TUTTI_LAST_STREAM(cudaGraphLaunch, (cudaGraphExec_t graph), graph)
TUTTI_LAST_STREAM(cudaGraphUpload, (cudaGraphExec_t graph), graph)
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* parameters) {
  return cudaGraphInstantiateWithParams(executable, graph, parameters);
}

// Streams and events.
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return cudaStreamQuery(own(stream)); }
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) { return cudaStreamSynchronize(own(stream)); }
TUTTI_FIRST_STREAM(cudaStreamGetFlags, (unsigned* flags), flags)
TUTTI_FIRST_STREAM(cudaStreamGetPriority, (int* priority), priority)
TUTTI_FIRST_STREAM(cudaStreamGetDevice, (int* index), index)
TUTTI_FIRST_STREAM(cudaStreamGetId, (unsigned long long* id), id)
TUTTI_FIRST_STREAM(cudaStreamWaitEvent, (cudaEvent_t event, unsigned flags), event, flags)
TUTTI_FIRST_STREAM(cudaStreamAddCallback, (cudaStreamCallback_t function, void* argument, unsigned flags),
                   function, argument, flags)
TUTTI_FIRST_STREAM(cudaStreamGetAttribute, (cudaLaunchAttributeID which, cudaLaunchAttributeValue* value),
                   which, value)
TUTTI_FIRST_STREAM(cudaStreamSetAttribute,
                   (cudaLaunchAttributeID which, const cudaLaunchAttributeValue* value), which, value)
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  return cudaStreamCopyAttributes(own(to), own(from));
}
TUTTI_LAST_STREAM(cudaEventRecord, (cudaEvent_t event), event)
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, own(stream), flags);
}

// Capture.
TUTTI_FIRST_STREAM(cudaStreamBeginCapture, (cudaStreamCaptureMode mode), mode)
TUTTI_FIRST_STREAM(cudaStreamEndCapture, (cudaGraph_t * graph), graph)
TUTTI_FIRST_STREAM(cudaStreamIsCapturing, (cudaStreamCaptureStatus * status), status)
TUTTI_FIRST_STREAM(cudaStreamGetCaptureInfo,
                   (cudaStreamCaptureStatus * status, unsigned long long* id, cudaGraph_t* graph,
                    const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges, size_t* count),
                   status, id, graph, nodes, edges, count)
TUTTI_FIRST_STREAM(cudaStreamUpdateCaptureDependencies,
                   (cudaGraphNode_t * nodes, const cudaGraphEdgeData* edges, size_t count, unsigned flags),
                   nodes, edges, count, flags)

// The driver's functions have no stream here.
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** address, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, address, CUDART_VERSION, flags, status);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** address, unsigned version,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, address, version, flags, status);
}
}  // extern "C"
