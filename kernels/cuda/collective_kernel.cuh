// What a kernel does around programs: it enters and leaves the operation for all to see, and counts.
#pragma once

#include <cstdint>

#include "collectives/programs.h"
#include "kernels/cuda/cuda_executor.cuh"
#include "kernels/cuda/cuda_kernel_list.cuh"

namespace tutti {

/// As RankStatus::enter.
__device__ inline void enterOperation(RankStatus& status, std::uint64_t operation,
                                      const Descriptor& descriptor) {
  const auto raw = std::bit_cast<std::array<std::uint64_t, 2>>(descriptor);
  auto& pair = status.words[operation % status.words.size()];
  // Release, so that whoever sees a new word also sees that the operation before was entered.
  storeRelease(wordOf(pair[0]), raw[0]);
  storeRelease(wordOf(pair[1]), raw[1]);
  storeRelease(wordOf(status.entered), operation);
}

/// One thread of the kernel. Until the last block leaves, nobody changes what this reads of the rank.
/// `collective`: what it carries out; nullptr: transfers.
__device__ inline void enterKernel(const CudaRank& rank, const CudaTask* collective) {
  storeRelaxed(wordOf(rank.control->started), rank.kernels + 1);
  if (collective == nullptr) return;
  enterOperation(*rank.status, rank.operation + 1, collective->plan.descriptor);
}

/// Thread 0 of each block, once the block is done. The last one tells the host.
__device__ inline void leaveKernel(CudaRank& rank, const CudaMoved& moved, bool is_collective) {
  addRelaxedOnDevice(&rank.moved.slots, moved.slots);
  addRelaxedOnDevice(&rank.moved.slot_bytes, moved.slot_bytes);
  addRelaxedOnDevice(&rank.moved.read_bytes, moved.read_bytes);
  addRelaxedOnDevice(&rank.moved.written_bytes, moved.written_bytes);
  addRelaxedOnDevice(&rank.moved.network_bytes, moved.network_bytes);
  if (addAcquireReleaseOnDevice(&rank.finished_blocks, 1) + 1 != gridDim.x) return;
  rank.finished_blocks = 0;
  CudaControl& control = *rank.control;
  storeRelaxed(wordOf(control.slots), rank.moved.slots);
  storeRelaxed(wordOf(control.slot_bytes), rank.moved.slot_bytes);
  storeRelaxed(wordOf(control.read_bytes), rank.moved.read_bytes);
  storeRelaxed(wordOf(control.written_bytes), rank.moved.written_bytes);
  storeRelaxed(wordOf(control.network_bytes), rank.moved.network_bytes);
  if (is_collective && rank.failed == 0) {
    ++rank.operation;
    storeRelaxed(wordOf(control.operations), rank.operation);
    storeRelease(wordOf(rank.status->completed), rank.operation);
  }
  ++rank.kernels;
  storeRelease(wordOf(control.finished), rank.kernels);
}

/// The executor of this block. Raw bytes: objects in shared memory have no constructors.
template <class Element>
__device__ inline CudaExecutor<Element>& blockExecutor() {
  alignas(CudaExecutor<Element>) __shared__ std::byte bytes[sizeof(CudaExecutor<Element>)];
  return *reinterpret_cast<CudaExecutor<Element>*>(bytes);
}

template <class Element>
__device__ void runCollective(const CudaCollectiveArgs& args) {
  CudaRank& rank = *args.rank;
  if (threadIdx.x == 0 && blockIdx.x == 0) enterKernel(rank, &args.task);
  auto& executor = blockExecutor<Element>();
  executor.open(&rank);
  executor.begin(args.task, blockIdx.x);
  if (executor.isAlive()) runProgram(executor, executor.task().plan, executor.work());
  if (threadIdx.x == 0) leaveKernel(rank, executor.moved(), true);
}

}  // namespace tutti
