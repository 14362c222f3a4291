#include "kernels/cuda/collective_kernel.cuh"
#include "kernels/cuda/float8.cuh"

extern "C" __global__ void __launch_bounds__(tutti::kCudaMostThreads, 1)
    tuttiCollectiveFloat8E4M3(const __grid_constant__ tutti::CudaCollectiveArgs args) {
  tutti::runCollective<tutti::Float8E4M3>(args);
}
