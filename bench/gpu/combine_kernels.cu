#include "bench/gpu/combine_kernels.h"
#include "kernels/cuda/combine.cuh"
#include "kernels/cuda/cuda_kernel_list.cuh"

namespace tutti::gpu_bench {
namespace {

/// As the kernels of the library are compiled.
__global__ void __launch_bounds__(kCudaMostThreads, 1)
    combineFloats(const CombineOperands operands, std::uint32_t sources, std::uint32_t destinations,
                  std::uint64_t bytes, std::uint64_t part_bytes, std::uint64_t piece_bytes) {
  __shared__ CombineJob job;
  const std::uint64_t begin = blockIdx.x * part_bytes;
  const std::uint64_t end = min(begin + part_bytes, bytes);
  for (std::uint64_t at = begin; at < end; at += piece_bytes) {
    if (threadIdx.x == 0) {
      for (std::uint32_t i = 0; i < 2; ++i) {
        job.srcs[i] = reinterpret_cast<std::uint64_t>(operands.from[i]) + at;
        job.dsts[i] = reinterpret_cast<std::uint64_t>(operands.to[i]) + at;
      }
      job.src_count = sources;
      job.dst_count = destinations;
    }
    __syncthreads();
    const std::uint64_t some = min(piece_bytes, end - at);
    if (sources == 1) {
      copyAll(job, some);
    } else {
      reduceAll<Float32, Reduction::sum>(job, some / sizeof(float), 1);
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t launchCombine(const CombineCase& shape, const CombineOperands& operands, std::uint64_t bytes,
                          std::uint64_t piece_bytes, int blocks, cudaStream_t stream) {
  constexpr std::uint64_t kLine = 128;
  const auto count = static_cast<std::uint64_t>(blocks);
  const std::uint64_t part_bytes = ((bytes + count - 1) / count + kLine - 1) / kLine * kLine;
  combineFloats<<<blocks, kCudaMostThreads, 0, stream>>>(operands, shape.sources, shape.destinations, bytes,
                                                         part_bytes, piece_bytes);
  return cudaGetLastError();
}

cudaError_t collectiveBlocksPerMultiprocessor(int* blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(tuttiCollectiveFloat32), kCudaMostThreads, 0);
}

}  // namespace tutti::gpu_bench
