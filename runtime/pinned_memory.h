// Host memory that GPUs may work on.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/core/accelerator.h"

namespace tutti {

/// Pinned for as long as this lives, and kept: memory must not be unmapped while it is pinned.
class PinnedMemory {
 public:
  /// `owner` keeps the memory. Throws Error where the system allows no more.
  PinnedMemory(Accelerator& gpus, void* address, std::size_t bytes, std::shared_ptr<const void> owner)
      : gpus_(&gpus), address_(address), owner_(std::move(owner)) {
    gpus.pin(address, bytes);
  }
  PinnedMemory(PinnedMemory&& other) noexcept
      : gpus_(other.gpus_),
        address_(std::exchange(other.address_, nullptr)),
        owner_(std::move(other.owner_)) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() {
    if (address_ != nullptr) gpus_->unpin(address_);
  }

 private:
  Accelerator* gpus_;
  void* address_;
  std::shared_ptr<const void> owner_;
};

}  // namespace tutti
