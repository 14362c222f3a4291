// Every kernel, by name: one per data type, and one for transfers. Each is a source of its own.
#pragma once

#include "kernels/cuda/cuda_work.h"

namespace tutti {

/// Most threads of a block; what the compiler shares registers out for.
inline constexpr int kCudaMostThreads = 256;

extern "C" __global__ void tuttiCollectiveInt8(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveUInt8(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveInt32(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveUInt32(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveInt64(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveUInt64(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveFloat16(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveFloat32(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveFloat64(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveBFloat16(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveFloat8E4M3(CudaCollectiveArgs args);
extern "C" __global__ void tuttiCollectiveFloat8E5M2(CudaCollectiveArgs args);
extern "C" __global__ void tuttiTransfers(CudaTransferArgs args);

}  // namespace tutti
