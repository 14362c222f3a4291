#include "kernels/cuda/collective_kernel.cuh"

extern "C" __global__ void __launch_bounds__(tutti::kCudaMostThreads, 1)
    tuttiCollectiveUInt8(const __grid_constant__ tutti::CudaCollectiveArgs args) {
  tutti::runCollective<tutti::UInt8>(args);
}
