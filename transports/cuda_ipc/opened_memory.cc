#include "transports/cuda_ipc/opened_memory.h"

#include <fmt/format.h>

#include <bit>

#include "tutti/error.h"

namespace tutti {

OpenedMemory::Mapping OpenedMemory::open(int device, const IpcHandle& handle, std::string* reason) try {
  const CurrentDevice current(device);
  const std::scoped_lock lock(mutex_);
  const std::pair key(device, handle);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    void* base = nullptr;
    const cudaError_t error = cudaIpcOpenMemHandle(&base, std::bit_cast<cudaIpcMemHandle_t>(handle),
                                                   cudaIpcMemLazyEnablePeerAccess);
    if (!succeeded(error)) {
      *reason = fmt::format("cudaIpcOpenMemHandle: {}: {}", inWords(error), ipcRemedy(error));
      return {};
    }
    found = entries_.emplace(key, Entry{.base = static_cast<std::byte*>(base)}).first;
  }
  ++found->second.users;
  return {found->second.base, Closer(this, device, handle)};
} catch (const Error& error) {
  *reason = error.what();
  return {};
}

// Under the lock, so that whoever opens the same allocation again finds it open or closed, not in between.
void OpenedMemory::close(int device, const IpcHandle& handle) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find({device, handle});
  if (--found->second.users > 0) return;
  const CurrentDevice current(device, std::nothrow);
  succeeded(cudaIpcCloseMemHandle(found->second.base));
  entries_.erase(found);
}

}  // namespace tutti
