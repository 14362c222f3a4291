// Device memory that several processes of a machine share.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/cuda_emulator/runtime/device.h"

namespace tutti::emulator {

/// For the allocation that `address` lies in; only cudaMalloc's can be shared. Throws CudaError.
cudaIpcMemHandle_t exportMemory(const void* address);
/// The base of the allocation, mapped here; again the same, and counted, when it is open already. It stays
/// valid when its owner frees it or dies. Throws cudaErrorMapBufferObjectFailed where the owner has gone.
std::byte* importMemory(const cudaIpcMemHandle_t& handle, unsigned flags);
/// One count less; with the last, the mapping goes. Throws cudaErrorInvalidValue.
void closeImport(void* base);
/// All that `device` has opened: for its reset.
void closeImportsOf(const Device& device);

}  // namespace tutti::emulator
