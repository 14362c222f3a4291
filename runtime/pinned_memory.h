// Host memory that GPUs may work on.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/core/accelerator.h"

namespace tutti {

/// Pinned for as long as this lives. The memory lives longer.
class PinnedMemory {
 public:
  /// Throws Error where the system allows no more.
  PinnedMemory(Accelerator& gpus, void* address, std::size_t bytes) : gpus_(&gpus), address_(address) {
    gpus.pin(address, bytes);
  }
  PinnedMemory(PinnedMemory&& other) noexcept
      : gpus_(other.gpus_), address_(std::exchange(other.address_, nullptr)) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() {
    if (address_ != nullptr) gpus_->unpin(address_);
  }

 private:
  Accelerator* gpus_;
  void* address_;
};

}  // namespace tutti
