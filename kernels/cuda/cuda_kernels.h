// The kernels, as the host launches them. Compiled by nvcc into libtutti_cuda.so.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_work.h"

namespace tutti {

/// Threads per block for a task that moves `bytes` per block.
int cudaBlockThreads(std::uint64_t bytes);

/// Loads every kernel on the current device, so that no launch has to: a load may wait for kernels that run.
cudaError_t loadCudaKernels();

/// Queues a collective on the stream: task.plan.lanes blocks.
cudaError_t launchCollective(const CudaCollectiveArgs& args, cudaStream_t stream);

/// Queues transfers: one block per queue.
cudaError_t launchTransfers(const CudaTransferArgs& args, std::uint32_t queues, std::uint64_t bytes_per_queue,
                            cudaStream_t stream);

}  // namespace tutti
