#include "runtime/cuda/host_pins.h"

#include <fmt/format.h>

#include "transports/cuda_ipc/cuda_call.h"
#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {

void HostPins::pin(void* address, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = pieces_.find(address);
  if (found != pieces_.end()) {
    if (found->second.bytes < bytes) {
      throw Error(ncclInternalError,
                  fmt::format("{} bytes at {} are pinned, and not {}", found->second.bytes, address, bytes));
    }
    ++found->second.users;
    return;
  }
  registerHostMemory(address, bytes, "links");
  // Once for all host memory: a communicator pins here first.
  void* as_seen_by_gpu = nullptr;
  const cudaError_t error = cudaHostGetDevicePointer(&as_seen_by_gpu, address, 0);
  if (!succeeded(error) || as_seen_by_gpu != address) {
    succeeded(cudaHostUnregister(address));
    throw Error(ncclUnhandledCudaError,
                fmt::format("this GPU does not see host memory at its own address (cudaHostGetDevicePointer: "
                            "{}), which Tutti needs",
                            inWords(error)));
  }
  pieces_.emplace(address, Piece{.bytes = bytes, .users = 1, .id = allocationId(address)});
}

void HostPins::unpin(void* address) noexcept {
  std::uint64_t id = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = pieces_.find(address);
    if (found == pieces_.end() || --found->second.users > 0) return;
    id = found->second.id;
    pieces_.erase(found);
  }
  // Others may pin meanwhile: this waits.
  if (!isGone(address, id)) succeeded(cudaHostUnregister(address));
}

}  // namespace tutti
