#include "collectives/point_to_point.h"
#include "kernels/cuda/collective_kernel.cuh"

extern "C" __global__ void __launch_bounds__(tutti::kCudaMostThreads, 1)
    tuttiTransfers(const __grid_constant__ tutti::CudaTransferArgs args) {
  using namespace tutti;
  CudaRank& rank = *args.rank;
  if (threadIdx.x == 0 && blockIdx.x == 0) enterKernel(rank, nullptr);
  auto& executor = blockExecutor<Bytes>();
  executor.open(&rank);
  for (std::uint32_t i = args.first[blockIdx.x]; i < args.first[blockIdx.x + 1]; ++i) {
    const CudaTask& task = args.tasks[i];
    executor.begin(task, 0);
    if (!executor.isAlive()) break;
    const bool is_send = task.kind == CudaTask::Kind::send;
    if (!(is_send ? sendProgram(executor, executor.work()) : receiveProgram(executor, executor.work())))
      break;
  }
  if (threadIdx.x == 0) leaveKernel(rank, executor.moved(), false);
}
