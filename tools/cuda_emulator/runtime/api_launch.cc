// Entry points: launching kernels and asking about them.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/fat_binary.h"
#include "tools/cuda_emulator/runtime/launch.h"
#include "tools/cuda_emulator/runtime/program.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

using namespace tutti::emulator;

namespace {

/// True where the launch is cooperative. What only makes a kernel faster is passed over.
bool readAttributes(const cudaLaunchConfig_t& config) {
  bool cooperative = false;
  for (unsigned index = 0; index < config.numAttrs; ++index) {
    const auto& attribute = config.attrs[index];
    if (attribute.id == cudaLaunchAttributeCooperative) cooperative = attribute.val.cooperative != 0;
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      const auto& cluster = attribute.val.clusterDim;
      if (cluster.x * cluster.y * cluster.z > 1)
        notEmulated("cudaLaunchKernelExC with thread block clusters");
    }
  }
  return cooperative;
}

}  // namespace

// What nvcc's host code calls for f<<<...>>>(...).
extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  threadState().configurations.push_back({grid, block, shared_bytes, static_cast<cudaStream_t>(stream)});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  return callAnyway([&] {
    auto& configurations = threadState().configurations;
    require(!configurations.empty(), cudaErrorMissingConfiguration);
    const auto configuration = configurations.back();
    configurations.pop_back();
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = configuration.stream;
  });
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return callAnyway([&] { *kernel = program().handle(function); });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return call([&] {
    launch(*program().function(kernel), {grid, block, shared_bytes, false, arguments}, stream);
  });
}
}  // extern "C"

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return call([&] {
    require(kernel != nullptr, cudaErrorInvalidValue);
    *kernel = program().handle(function);
  });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return call([&] {
    launch(*program().function(function), {grid, block, shared_bytes, false, arguments}, stream);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  return call([&] {
    launch(*program().function(function), {grid, block, shared_bytes, true, arguments}, stream);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return call([&] {
    require(config != nullptr, cudaErrorInvalidValue);
    const LaunchRequest request{config->gridDim, config->blockDim, config->dynamicSmemBytes,
                                readAttributes(*config), arguments};
    launch(*program().function(function), request, config->stream);
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return call([&] {
    require(attributes != nullptr, cudaErrorInvalidValue);
    const auto found = program().function(function);
    const auto kernel = found->on(currentDevice());
    *attributes = {};
    attributes->sharedSizeBytes = kernel->staticSharedBytes();
    attributes->maxThreadsPerBlock = static_cast<int>(kernel->maxThreadsPerBlock());
    attributes->numRegs = 32;
    attributes->ptxVersion = kArchitecture;
    attributes->binaryVersion = kArchitecture;
    const auto otherwise = kSharedBytesPerBlock - kernel->staticSharedBytes();
    attributes->maxDynamicSharedSizeBytes =
        static_cast<int>(std::max(found->dynamicSharedLimit(), otherwise));
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call([&] {
    require(attribute >= cudaFuncAttributeMaxDynamicSharedMemorySize && attribute < cudaFuncAttributeMax,
            cudaErrorInvalidValue);
    const auto found = program().function(function);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return;
    const auto room = kMaxSharedBytesPerBlock - found->on(currentDevice())->staticSharedBytes();
    require(value >= 0 && static_cast<size_t>(value) <= room, cudaErrorInvalidValue);
    found->setDynamicSharedLimit(static_cast<size_t>(value));
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return call([&] {
    require(name != nullptr, cudaErrorInvalidValue);
    *name = program().function(function)->name().c_str();
  });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig /*config*/) {
  return call([&] { program().function(function); });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache /*config*/) {
  return call([&] { program().function(function); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned /*flags*/) {
  return call([&] {
    require(blocks != nullptr && threads > 0, cudaErrorInvalidValue);
    const auto kernel = program().function(function)->on(currentDevice());
    *blocks = blocksPerMultiprocessor(*kernel, static_cast<size_t>(threads), shared_bytes);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                      int threads) {
  return call([&] {
    require(bytes != nullptr && blocks > 0 && threads > 0, cudaErrorInvalidValue);
    const auto kernel = program().function(function)->on(currentDevice());
    const auto fits = [&](size_t dynamic) {
      return blocksPerMultiprocessor(*kernel, static_cast<size_t>(threads), dynamic) >= blocks;
    };
    require(fits(0), cudaErrorInvalidValue);
    size_t least = 0;  // fits; `most` does not
    size_t most = kMaxSharedBytesPerBlock + 1;
    while (most - least > 1) {
      const size_t middle = (least + most) / 2;
      (fits(middle) ? least : most) = middle;
    }
    *bytes = least;
  });
}
