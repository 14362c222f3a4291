#include "transports/cuda_ipc/opened_memory.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>

#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {

constexpr auto kUntilClosed = std::chrono::seconds(1);

OpenedMemory::Mapping OpenedMemory::open(int device, const IpcHandle& handle, std::string* reason) try {
  const CurrentDevice current(device);
  std::unique_lock lock(mutex_);
  const std::pair key(device, handle);
  auto found = entries_.end();
  const auto isClosing = [&] {
    found = entries_.find(key);
    return found != entries_.end() && found->second.users == 0;
  };
  if (!closed_.wait_for(lock, kUntilClosed, [&] { return !isClosing(); })) {
    *reason = "it is being closed, which waits for kernels on this GPU";
    return {};
  }
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

// Whoever opens the same allocation again waits until it is closed; others do not.
void OpenedMemory::close(int device, const IpcHandle& handle, std::uint64_t id) noexcept {
  std::unique_lock lock(mutex_);
  const std::pair key(device, handle);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.id != id) return;  // of before a reset
  if (--found->second.users > 0) return;
  std::byte* const base = found->second.base;
  lock.unlock();
  if (!isGone(base, id)) {
    const CurrentDevice current(device, std::nothrow);
    succeeded(cudaIpcCloseMemHandle(base));
  }
  lock.lock();
  entries_.erase(key);
  closed_.notify_all();
}

}  // namespace tutti
