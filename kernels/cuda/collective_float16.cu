#include "kernels/cuda/collective_kernel.cuh"

extern "C" __global__ void __launch_bounds__(tutti::kCudaMostThreads, 1)
    tuttiCollectiveFloat16(const __grid_constant__ tutti::CudaCollectiveArgs args) {
  tutti::runCollective<tutti::Float16>(args);
}
