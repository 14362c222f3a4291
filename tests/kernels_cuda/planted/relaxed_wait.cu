// Waits look at flags without an order.
#include "kernels/cuda/cuda_lane.cuh"

namespace tutti {
__device__ inline std::uint32_t loadRelaxed(const std::uint32_t* word) { return loadRelaxedOnDevice(word); }
}  // namespace tutti

#define loadAcquire loadRelaxed
#include "kernels/cuda/cuda_links.cuh"
#undef loadAcquire
#define tuttiTransfers plantedRelaxedWait
#include "kernels/cuda/transfers.cu"
