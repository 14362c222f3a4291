// The entries of libtutti_train_cuda.so.
#pragma once

#include "tools/train/kernels.h"

namespace tutti::train {

/// To be deleted by the caller; nullptr where `version` is not device::kPluginVersion.
template <class T>
using CudaKernelsEntry = Kernels<T>* (*)(int version, device::Device* device, cudaStream_t stream);
inline constexpr const char* kCudaKernelsFloat = "tuttiTrainKernelsFloat";
inline constexpr const char* kCudaKernelsDouble = "tuttiTrainKernelsDouble";

}  // namespace tutti::train
