#include "runtime/cuda/host_pins.h"

#include <fmt/format.h>

#include <chrono>

#include "transports/cuda_ipc/cuda_call.h"
#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {

bool HostPins::isGoing(void* address) const {
  const auto found = pieces_.find(address);
  return found != pieces_.end() && found->second.users == 0;
}

void HostPins::pin(void* address, std::size_t bytes) {
  constexpr auto kAtMost = std::chrono::seconds(10);
  std::unique_lock lock(mutex_);
  if (!gone_.wait_for(lock, kAtMost, [&] { return !isGoing(address); })) {
    throw Error(
        ncclSystemError,
        fmt::format("host memory at {} is still being unpinned after {} s: cudaHostUnregister waits for "
                    "kernels of this process, which have to end first",
                    address, kAtMost.count()));
  }
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
  }
  // Others may pin other memory meanwhile: this waits.
  if (!isGone(address, id)) succeeded(cudaHostUnregister(address));
  const std::scoped_lock lock(mutex_);
  pieces_.erase(address);
  gone_.notify_all();
}

}  // namespace tutti
