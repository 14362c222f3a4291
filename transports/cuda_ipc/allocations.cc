#include "transports/cuda_ipc/allocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {
namespace {

// Smaller allocations share a block of this size, and whoever opens one of them maps the whole block.
constexpr std::size_t kGranularity = std::size_t{2} << 20;

constexpr const char* kNotShareable =
    "memory of pools (cudaMallocAsync), memory that is mapped piecemeal (such as PyTorch's expandable "
    "segments) "
    "and managed memory cannot be mapped by other processes; memory of ncclMemAlloc or cudaMalloc can";

}  // namespace

cudaError_t exportHandle(const void* address, IpcHandle* handle) {
  cudaIpcMemHandle_t made;
  const cudaError_t error = cudaIpcGetMemHandle(&made, const_cast<void*>(address));
  if (succeeded(error)) *handle = std::bit_cast<IpcHandle>(made);
  return error;
}

std::string ipcRemedy(cudaError_t error) {
  switch (error) {
    case cudaErrorNotSupported:
      return "CUDA IPC does not work here (WSL, some virtual machines, and Tegra do not have it)";
    case cudaErrorPeerAccessUnsupported:
      return "the GPUs have no peer access to each other; nvidia-smi topo -p2p r shows who has";
    case cudaErrorInvalidValue:
    case cudaErrorMapBufferObjectFailed:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorDeviceUninitialized:
      return "in containers, both sides need one IPC and one PID namespace (docker run --ipc=host "
             "--pid=host, or "
             "one container), and the same user";
    case cudaErrorMemoryAllocation:
      return "the GPU's memory or address space is used up";
    default:
      return "data goes by host memory instead";
  }
}

void* Allocations::allocate(std::size_t bytes) {
  std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
  if (rounded < bytes) rounded = bytes;  // more than there can be
  Block block{.memory = allocateDevice(rounded, "ncclMemAlloc", "Ask for less, or free memory"),
              .bytes = rounded};
  void* address = block.memory.get();
  const std::scoped_lock lock(mutex_);
  // One that a reset of the device has freed may have had the address.
  blocks_.insert_or_assign(reinterpret_cast<std::uintptr_t>(address), std::move(block));
  return address;
}

bool Allocations::free(void* address) {
  decltype(blocks_)::node_type block;  // freed outside of the lock, since that waits for the device
  const std::scoped_lock lock(mutex_);
  block = blocks_.extract(reinterpret_cast<std::uintptr_t>(address));
  return !block.empty() && !isGone(address, block.mapped().memory.get_deleter().id);
}

std::pair<const std::byte*, std::size_t> Allocations::find(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::scoped_lock lock(mutex_);
  const auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return {};
  const auto& [begin, block] = *std::prev(after);
  if (at - begin >= block.bytes || isGone(block.memory.get(), block.memory.get_deleter().id)) return {};
  return {block.memory.get(), block.bytes};
}

bool Allocations::isShareable(const void* address) const {
  if (find(address).first != nullptr) return true;
  const auto known = askDriver(address);
  return known && known->has_ipc;
}

void Allocations::requireInside(const void* address, std::size_t bytes) const {
  auto [base, allocated] = find(address);
  if (base == nullptr) {
    const auto known = askDriver(address);
    if (!known || !known->has_ipc) return;
    base = known->base;
    allocated = known->bytes;
  }
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base);
  if (bytes <= allocated - offset) return;
  throw Error(ncclInvalidArgument,
              fmt::format("ncclCommRegister: {} bytes at {} go beyond their allocation, which is {} bytes at "
                          "{}. Is the size in bytes? Register each allocation by itself",
                          bytes, address, allocated, static_cast<const void*>(base)));
}

bool Allocations::exportMemory(const void* address, ExportedMemory* exported, std::string* reason) const {
  const std::byte* base = find(address).first;
  if (base == nullptr) {
    const auto known = askDriver(address);
    if (known && !known->has_ipc) {
      *reason = kNotShareable;
      return false;
    }
    if (known) base = known->base;
  }
  if (const cudaError_t error = exportHandle(address, &exported->handle); error != cudaSuccess) {
    *reason = fmt::format("cudaIpcGetMemHandle: {}: {}", inWords(error),
                          error == cudaErrorInvalidValue ? kNotShareable : ipcRemedy(error));
    return false;
  }
  if (base == nullptr) {
    *reason = "the driver does not tell where its allocation begins; memory of ncclMemAlloc could be mapped";
    return false;
  }
  exported->offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base);
  return true;
}

}  // namespace tutti
