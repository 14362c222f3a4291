// Memory that devices may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "transports/verbs/device.h"
#include "tutti/error.h"

namespace tutti {

/// The system allows no more.
class MemoryLimitError : public Error {
  using Error::Error;
};

/// Registered with one device for as long as it lives. Pages stay where they are meanwhile, and count against
/// the limit of locked memory.
class RegisteredMemory {
 public:
  /// Throws Error; MemoryLimitError, with limit and need, where the limit of locked memory does not suffice.
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
/// with a device when it first meets them; forgotten when the user says so, and sooner where there are too
/// many or the system allows no more: those that nothing uses, the least recently used first. Thread-safe.
class UserMemory {
 public:
  static constexpr std::size_t kMost = 256;

  /// How it went: what devices work on in place, and what they do not, and why. Either may be empty.
  struct Notes {
    std::function<void(const std::string&)> in_place;
    std::function<void(const std::string&)> copied;
  };
  explicit UserMemory(Notes notes = {}, std::size_t most = kMost) : notes_(std::move(notes)), most_(most) {}

  void add(std::span<std::byte> buffer);
  /// No link may be using it.
  void remove(const void* buffer);

  /// What covers all of `bytes`, or nullptr: it is not registered, or the device takes no more. Keep it while
  /// the device works on it.
  std::shared_ptr<RegisteredMemory> find(const std::shared_ptr<VerbsDevice>& device,
                                         std::span<const std::byte> bytes);

 private:
  struct Registration {
    std::shared_ptr<RegisteredMemory> memory;
    std::uint64_t used = 0;  ///< by the clock of finds
  };
  struct Buffer {
    std::span<std::byte> bytes;
    std::map<const VerbsDevice*, Registration> by_device;
    bool is_refused = false;  ///< not tried again until something is forgotten
  };

  std::shared_ptr<RegisteredMemory> make(const std::shared_ptr<VerbsDevice>& device, Buffer& buffer);
  bool evict();

  Notes notes_;
  std::size_t most_;
  std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::size_t count_ = 0;                       ///< registrations
  std::map<const std::byte*, Buffer> buffers_;  ///< by address
};

}  // namespace tutti
