// Memory that devices may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "transports/verbs/device.h"

namespace tutti {

/// Registered with one device for as long as it lives. Pages stay where they are meanwhile, and count against
/// the limit of locked memory.
class RegisteredMemory {
 public:
  /// Throws Error; where the limit does not suffice, with limit and need, before the system is asked.
  RegisteredMemory(std::shared_ptr<VerbsDevice> device, std::span<std::byte> bytes);
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  std::uint32_t localKey() const { return region_->lkey; }
  std::uint32_t remoteKey() const { return region_->rkey; }

 private:
  std::shared_ptr<VerbsDevice> device_;
  std::span<std::byte> bytes_;
  ibv_mr* region_ = nullptr;
};

/// Buffers that the user registered with the communicator: devices read and write them in place. Registered
/// with a device when it first meets them; forgotten when the user says so. Thread-safe.
class UserMemory {
 public:
  void add(std::span<std::byte> buffer);
  /// No link may be using it.
  void remove(const void* buffer);

  /// What covers all of `bytes`, or nullptr: it is not registered, or the device takes no more. Keep it while
  /// the device works on it.
  std::shared_ptr<RegisteredMemory> find(const std::shared_ptr<VerbsDevice>& device,
                                         std::span<const std::byte> bytes);

 private:
  struct Buffer {
    std::span<std::byte> bytes;
    std::map<const VerbsDevice*, std::shared_ptr<RegisteredMemory>> by_device;
  };

  std::mutex mutex_;
  std::map<const std::byte*, Buffer> buffers_;  ///< by address
};

}  // namespace tutti
