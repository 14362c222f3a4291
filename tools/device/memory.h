// Memory of a device, and how the host looks at it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "tools/device/device.h"

namespace tutti::device {

/// Memory of Device::allocate, freed with the object. The device outlives it. Move only.
class Memory {
 public:
  Memory() = default;
  Memory(Device& device, std::size_t bytes)
      : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (data_ != nullptr) device_->free(data_);
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Memory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A device's bytes as the host sees them: a copy that is moved by load() and store(); in host memory the
/// bytes themselves. Behind what is queued on the stream. Does not own the device's bytes.
class HostView {
 public:
  HostView(Device& device, cudaStream_t stream, std::byte* at, std::size_t bytes)
      : device_(device), stream_(stream), at_(at), bytes_(bytes) {
    if (device.kind() != Kind::host) copy_.resize(bytes);
  }

  std::byte* data() { return copy_.empty() ? at_ : copy_.data(); }
  const std::byte* data() const { return copy_.empty() ? at_ : copy_.data(); }
  std::size_t bytes() const { return bytes_; }

  /// From the device.
  void load() {
    if (!copy_.empty()) device_.copyOut(copy_.data(), at_, bytes_, stream_);
  }
  /// To the device.
  void store() const {
    if (!copy_.empty()) device_.copyIn(at_, copy_.data(), bytes_, stream_);
  }

 private:
  Device& device_;
  cudaStream_t stream_;
  std::byte* at_;
  std::size_t bytes_;
  std::vector<std::byte> copy_;
};

}  // namespace tutti::device
