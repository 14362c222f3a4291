// GPU memory of other processes that this process has opened.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "transports/cuda_ipc/allocations.h"

namespace tutti {

/// The opened allocations of a process: each is opened once per device, however many use it. Thread-safe.
/// Outlives what it returns.
class OpenedMemory {
 public:
  class Closer {
   public:
    Closer() = default;
    Closer(OpenedMemory* owner, int device, const IpcHandle& handle, std::uint64_t id)
        : owner_(owner), device_(device), handle_(handle), id_(id) {}
    void operator()(std::byte* /*base*/) const noexcept { owner_->close(device_, handle_, id_); }

   private:
    OpenedMemory* owner_ = nullptr;
    int device_ = -1;
    IpcHandle handle_{};
    std::uint64_t id_ = 0;
  };
  /// The base of the allocation, as `device` sees it, until the pointer's end.
  using Mapping = std::unique_ptr<std::byte, Closer>;

  OpenedMemory() = default;
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;

  /// For `device`, which gets access to the exporter's GPU. Empty, with *reason set, where it fails. This and
  /// the pointer's end may wait for kernels that run on the device.
  Mapping open(int device, const IpcHandle& handle, std::string* reason);

 private:
  struct Entry {
    std::byte* base = nullptr;
    std::uint64_t id = 0;  ///< see allocationId(): cudaDeviceReset closes what is open
    int users = 0;         ///< 0: it is being closed
  };
  void close(int device, const IpcHandle& handle, std::uint64_t id) noexcept;

  std::mutex mutex_;
  std::condition_variable closed_;
  std::map<std::pair<int, IpcHandle>, Entry> entries_;
};

}  // namespace tutti
