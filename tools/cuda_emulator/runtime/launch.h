// Kernel launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/cuda_emulator/runtime/operation.h"
#include "tools/cuda_emulator/runtime/program.h"
#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {

struct LaunchRequest {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  bool cooperative = false;  ///< all blocks must fit on the device at once
  void** arguments = nullptr;
};

/// The arguments are copied now. Throws what CUDA returns for a shape that the device or the function does
/// not allow.
Operation kernelOperation(Device& device, const Function& function, const LaunchRequest& request);
/// Puts it into a stream of the current device, or into the graph that the stream captures.
void launch(const Function& function, const LaunchRequest& request, cudaStream_t stream);

/// How many blocks of a kernel a multiprocessor holds at once. 0: none fits.
int blocksPerMultiprocessor(const Kernel& kernel, std::size_t block_threads,
                            std::size_t dynamic_shared_bytes);

}  // namespace tutti::emulator
