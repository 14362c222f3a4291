// Host memory that GPUs can work on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tutti {

/// The pinned host memory of a process. Several ranks of a process share segments: each piece stays pinned
/// until all that pinned it have unpinned it. Whoever pins it while it is being unpinned waits. Thread-safe.
class HostPins {
 public:
  HostPins() = default;
  HostPins(const HostPins&) = delete;
  HostPins& operator=(const HostPins&) = delete;

  /// Throws Error.
  void pin(void* address, std::size_t bytes);
  /// Waits for the device, as cudaHostUnregister does.
  void unpin(void* address) noexcept;

 private:
  struct Piece {
    std::size_t bytes = 0;
    int users = 0;         ///< 0: it is being unpinned
    std::uint64_t id = 0;  ///< see allocationId(): cudaDeviceReset unpins
  };
  bool isGoing(void* address) const;

  std::mutex mutex_;
  std::condition_variable gone_;
  std::map<void*, Piece> pieces_;  ///< by address
};

}  // namespace tutti
