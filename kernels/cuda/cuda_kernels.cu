#include "kernels/cuda/cuda_kernels.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/cuda_kernel_list.cuh"
#include "runtime/core/extent.h"
#include "runtime/core/scale.h"

namespace tutti {
namespace {

/// By data type.
constexpr std::array<void (*)(CudaCollectiveArgs), kDataTypeCount> kCollectives = {
    tuttiCollectiveInt8,    tuttiCollectiveUInt8,    tuttiCollectiveInt32,      tuttiCollectiveUInt32,
    tuttiCollectiveInt64,   tuttiCollectiveUInt64,   tuttiCollectiveFloat16,    tuttiCollectiveFloat32,
    tuttiCollectiveFloat64, tuttiCollectiveBFloat16, tuttiCollectiveFloat8E4M3, tuttiCollectiveFloat8E5M2};

const void* collectiveKernel(DataType type) {
  return reinterpret_cast<const void*>(kCollectives[static_cast<std::size_t>(type)]);
}

cudaError_t launch(const void* kernel, std::uint32_t blocks, std::uint64_t bytes_per_block, void* args,
                   cudaStream_t stream) {
  const auto threads = static_cast<unsigned>(cudaBlockThreads(bytes_per_block));
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), &args, 0, stream);
}

}  // namespace

int cudaBlockThreads(std::uint64_t bytes) {
  // A thread has 16 bytes of a source under way at least; a warp reads the operands of a call.
  constexpr std::uint64_t kWarp = 32;
  constexpr std::uint64_t kWarpBytes = kWarp * 16;
  const std::uint64_t warps = (bytes + kWarpBytes - 1) / kWarpBytes;
  return static_cast<int>(std::clamp<std::uint64_t>(warps * kWarp, kWarp, kCudaMostThreads));
}

cudaError_t loadCudaKernels() {
  cudaFuncAttributes attributes;
  for (const auto kernel : kCollectives) {
    const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
    if (error != cudaSuccess) return error;
  }
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(tuttiTransfers));
}

cudaError_t launchCollective(const CudaCollectiveArgs& args, cudaStream_t stream) {
  CudaCollectiveArgs copy = args;
  const Plan& plan = copy.task.plan;
  const Descriptor& d = plan.descriptor;
  if (d.op == RedOp::avg) copy.task.scale = averageScale(d.type, plan.nranks);
  const Extent extent = extentOf(d.collective, plan.nranks);
  const std::uint64_t bytes = d.count * sizeOf(d.type) * std::max(extent.send_blocks, extent.recv_blocks);
  // Packets go word by word, of 4 bytes.
  const std::uint64_t worth = plan.slots == SlotForm::packets ? 4 * bytes : bytes / plan.lanes;
  return launch(collectiveKernel(d.type), plan.lanes, worth, &copy, stream);
}

cudaError_t launchTransfers(const CudaTransferArgs& args, std::uint32_t queues, std::uint64_t bytes_per_queue,
                            cudaStream_t stream) {
  CudaTransferArgs copy = args;
  return launch(reinterpret_cast<const void*>(tuttiTransfers), queues, bytes_per_queue, &copy, stream);
}

}  // namespace tutti
