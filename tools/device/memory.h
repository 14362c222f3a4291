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
      : device_(device),
        stream_(stream),
        at_(at),
        bytes_(bytes),
        copy_(device.kind() == Kind::host ? 0 : bytes),
        data_(device.kind() == Kind::host ? at : copy_.data()) {}
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  /// From the device.
  void load() {
    if (data_ != at_) device_.copyOut(data_, at_, bytes_, stream_);
  }
  /// To the device.
  void store() {
    if (data_ != at_) device_.copyIn(at_, data_, bytes_, stream_);
  }

 private:
  Device& device_;
  cudaStream_t stream_;
  std::byte* at_;
  std::size_t bytes_;
  std::vector<std::byte> copy_;
  std::byte* data_;
};

}  // namespace tutti::device
