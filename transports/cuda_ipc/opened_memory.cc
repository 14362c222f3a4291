#include "transports/cuda_ipc/opened_memory.h"

#include <fmt/format.h>

#include <bit>

#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {

OpenedMemory::Mapping OpenedMemory::open(int device, const IpcHandle& handle, std::string* reason) try {
  const CurrentDevice current(device);
  const std::scoped_lock lock(mutex_);
  const std::pair key(device, handle);
  auto found = entries_.find(key);
  if (found != entries_.end() && isGone(found->second.base, found->second.id)) {
    entries_.erase(found);
    found = entries_.end();
  }
  if (found == entries_.end()) {
    void* base = nullptr;
    const cudaError_t error = cudaIpcOpenMemHandle(&base, std::bit_cast<cudaIpcMemHandle_t>(handle),
                                                   cudaIpcMemLazyEnablePeerAccess);
    if (!succeeded(error)) {
      *reason = fmt::format("cudaIpcOpenMemHandle: {}: {}", inWords(error), ipcRemedy(error));
      return {};
    }
    found =
        entries_.emplace(key, Entry{.base = static_cast<std::byte*>(base), .id = allocationId(base)}).first;
  }
  ++found->second.users;
  return {found->second.base, Closer(this, device, handle, found->second.id)};
} catch (const Error& error) {
  *reason = error.what();
  return {};
}

// Under the lock, so that whoever opens the same allocation again finds it open or closed, not in between.
void OpenedMemory::close(int device, const IpcHandle& handle, std::uint64_t id) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find({device, handle});
  if (found == entries_.end() || found->second.id != id) return;  // of before a reset
  if (--found->second.users > 0) return;
  if (!isGone(found->second.base, id)) {
    const CurrentDevice current(device, std::nothrow);
    succeeded(cudaIpcCloseMemHandle(found->second.base));
  }
  entries_.erase(found);
}

}  // namespace tutti
