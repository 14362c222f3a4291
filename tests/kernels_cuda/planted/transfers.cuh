// The kernel of transfers, for an executor that is broken on purpose. Without relocatable code each kernel
// needs a source of its own.
#pragma once

#include "collectives/point_to_point.h"
#include "kernels/cuda/collective_kernel.cuh"

namespace tutti::test {

template <class Executor>
__device__ void runTransfers(const CudaTransferArgs& args) {
  alignas(Executor) __shared__ std::byte bytes[sizeof(Executor)];
  auto& executor = *reinterpret_cast<Executor*>(bytes);
  executor.open(args.rank);
  for (std::uint32_t i = args.first[blockIdx.x]; i < args.first[blockIdx.x + 1]; ++i) {
    executor.begin(args.tasks[i], 0);
    const bool is_send = executor.task().kind == CudaTask::Kind::send;
    if (is_send) sendProgram(executor, executor.work());
    if (!is_send) receiveProgram(executor, executor.work());
  }
  if (threadIdx.x == 0) leaveKernel(*args.rank, executor.moved(), false);
}

}  // namespace tutti::test
