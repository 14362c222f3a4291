#include "tools/cuda_emulator/runtime/launch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/known_memory.h"

namespace tutti::emulator {
namespace {

bool within(const dim3& size, const unsigned (&limits)[3]) {
  return size.x > 0 && size.y > 0 && size.z > 0 && size.x <= limits[0] && size.y <= limits[1] &&
         size.z <= limits[2];
}

std::uint64_t count(const dim3& size) { return std::uint64_t{size.x} * size.y * size.z; }

Dim3 toDim3(const dim3& size) { return {size.x, size.y, size.z}; }

void validate(const Function& function, const Kernel& kernel, const LaunchRequest& request) {
  require(within(request.grid, kMaxGridDimensions) && within(request.block, kMaxBlockDimensions) &&
              count(request.block) <= kMaxThreadsPerBlock,
          cudaErrorInvalidConfiguration);
  require(count(request.block) <= kernel.maxThreadsPerBlock(), cudaErrorInvalidValue);
  const auto limit =
      std::max(function.dynamicSharedLimit(), kSharedBytesPerBlock - kernel.staticSharedBytes());
  require(request.shared_bytes <= limit, cudaErrorInvalidValue);
  if (!request.cooperative) return;
  const auto resident = blocksPerMultiprocessor(kernel, count(request.block), request.shared_bytes);
  require(count(request.grid) <= static_cast<std::uint64_t>(resident) * kMultiprocessors,
          cudaErrorCooperativeLaunchTooLarge);
}

std::vector<std::byte> packArguments(const Kernel& kernel, void** arguments) {
  std::vector<std::byte> packed(kernel.argumentBytes());
  std::size_t index = 0;
  for (const auto& parameter : kernel.parameters()) {
    require(arguments != nullptr && arguments[index] != nullptr, cudaErrorInvalidValue);
    std::memcpy(packed.data() + parameter.offset, arguments[index++], parameter.bytes);
  }
  return packed;
}

/// The machine says in words what went wrong.
cudaError_t codeOf(std::string_view why) {
  const auto says = [why](std::string_view words) { return why.find(words) != std::string_view::npos; };
  if (says(": misaligned access of ")) return cudaErrorMisalignedAddress;
  return says(": access of ") || says(": access to ") ? cudaErrorIllegalAddress : cudaErrorLaunchFailure;
}

/// A launch once its place in the stream has come.
void runKernel(Device& device, const Kernel& kernel, const LaunchShape& shape,
               const std::vector<std::byte>& arguments) {
  if (device.fault() != cudaSuccess) return;
  try {
    kernel.run(shape, arguments.data());
  } catch (const std::exception& error) {
    device.fail(codeOf(error.what()), error.what());
  }
}

}  // namespace

Operation kernelOperation(Device& device, const Function& function, const LaunchRequest& request) {
  checkAgainstMemoryMap();
  auto kernel = function.readyOn(device);
  validate(function, *kernel, request);
  const LaunchShape shape{.grid = toDim3(request.grid),
                          .block = toDim3(request.block),
                          .dynamic_shared_bytes = request.shared_bytes,
                          .stop = device.failed()};
  auto arguments = packArguments(*kernel, request.arguments);
  return plainOperation(cudaGraphNodeTypeKernel,
                        [&device, kernel = std::move(kernel), shape, arguments = std::move(arguments)] {
                          runKernel(device, *kernel, shape, arguments);
                        });
}

void launch(const Function& function, const LaunchRequest& request, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  auto& device = currentDevice();
  require(&stream->device() == &device, cudaErrorInvalidResourceHandle);
  submit(stream, kernelOperation(device, function, request));
}

int blocksPerMultiprocessor(const Kernel& kernel, std::size_t block_threads,
                            std::size_t dynamic_shared_bytes) {
  if (block_threads == 0 || block_threads > kMaxThreadsPerBlock) return 0;
  const auto threads = (block_threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  const auto shared = kernel.staticSharedBytes() + dynamic_shared_bytes + kReservedSharedBytesPerBlock;
  const auto by_threads = kMaxThreadsPerMultiprocessor / threads;
  const auto by_shared = kSharedBytesPerMultiprocessor / shared;
  return static_cast<int>(std::min({by_threads, by_shared, std::size_t{kMaxBlocksPerMultiprocessor}}));
}

}  // namespace tutti::emulator
