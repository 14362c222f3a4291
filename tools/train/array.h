// Numbers in the memory of a device.
#pragma once

#include <cstddef>
#include <span>

#include "tools/device/memory.h"

namespace tutti::train {

/// The device outlives it. Move only.
template <class T>
class Array {
 public:
  Array() = default;
  Array(device::Device& device, std::size_t count) : memory_(device, count * sizeof(T)), count_(count) {}

  std::span<T> span() const { return {reinterpret_cast<T*>(memory_.data()), count_}; }
  std::span<std::byte> bytes() const { return {memory_.data(), memory_.bytes()}; }

 private:
  device::Memory memory_;
  std::size_t count_ = 0;
};

}  // namespace tutti::train
