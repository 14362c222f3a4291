// All that is asked of the CUDA driver itself; everything else goes through the CUDA runtime. Its functions
// are found at run time, so nothing links against libcuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/unique_fd.h"

namespace tutti {

/// The allocation that an address of a GPU's memory lies in.
struct DriverAllocation {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  /// Whether other processes can map it by cudaIpcGetMemHandle: memory of cudaMalloc, not of pools
  /// (cudaMallocAsync), nor mapped piecemeal (VMM: PyTorch's expandable segments), nor managed.
  bool has_ipc = false;
};

/// Nothing where the driver does not know the address, or does not offer these questions.
std::optional<DriverAllocation> askDriver(const void* address);

/// Another number for each allocation of the process, also for one that gets the address of one that was
/// freed. 0 where the driver does not tell.
std::uint64_t allocationId(const void* address);

/// Whether allocation `id`, which held `address`, is gone: it was freed, or cudaDeviceReset has ended all
/// that the process had on its GPU. False where the driver does not tell, and for id 0. Any thread; needs no
/// device, and takes no memory of one.
bool isGone(const void* address, std::uint64_t id);

/// A dma-buf of memory of that device; both ends on pages of the host. Where there is none, *why_not says
/// why.
UniqueFd exportDmaBuf(int device, const void* address, std::size_t bytes, std::string* why_not);

}  // namespace tutti
