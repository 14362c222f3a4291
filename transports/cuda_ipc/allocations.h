// GPU memory that this process owns: what ncclMemAlloc hands out, and whether peers may map an address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "transports/cuda_ipc/cuda_call.h"

namespace tutti {

/// A cudaIpcMemHandle_t as bytes.
using IpcHandle = std::array<std::byte, 64>;
static_assert(sizeof(IpcHandle) == sizeof(cudaIpcMemHandle_t));

/// Memory as other processes can open it: the handle stands for the whole allocation.
struct ExportedMemory {
  IpcHandle handle{};
  std::uint64_t offset = 0;  ///< of the memory in its allocation
};

/// The handle of the allocation that `address` lies in. Throws nothing: the error tells.
cudaError_t exportHandle(const void* address, IpcHandle* handle);

/// Why a handle could not be had or opened, in words, with what to do.
std::string ipcRemedy(cudaError_t error);

/// The GPU memory that allocate() returned. Thread-safe.
class Allocations {
 public:
  Allocations() = default;
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  /// On the current device.
  void* allocate(std::size_t bytes);
  /// False for what allocate() did not return, or cudaDeviceReset has freed. Waits for the device, as
  /// cudaFree does.
  bool free(void* address);

  /// Whether GPUs with peer access, and with IPC other processes, reach the memory: it is cudaMalloc's. False
  /// where that cannot be told.
  bool isShareable(const void* address) const;

  /// Throws Error(ncclInvalidArgument) where `bytes` at `address` go beyond an allocation of cudaMalloc.
  /// Others may be mapped piecemeal: what lies behind a piece may belong to them.
  void requireInside(const void* address, std::size_t bytes) const;

  /// Exports the allocation of a GPU that `address` lies in. False, with *reason set, where peers could not
  /// open it.
  bool exportMemory(const void* address, ExportedMemory* exported, std::string* reason) const;

 private:
  struct Block {
    OwnedDeviceMemory<std::byte> memory;
    std::size_t bytes;
  };
  /// The block that the address lies in; {nullptr, 0}: none.
  std::pair<const std::byte*, std::size_t> find(const void* address) const;

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;  ///< by address
};

}  // namespace tutti
