// What ranks tell each other beside their work: through the library itself, wherever its buffers live.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "tools/device/memory.h"
#include "tools/device/seat.h"

namespace tutti::device {

/// All ranks of one thread together. All ranks of the communicator call the same in the same order.
class Exchange {
 public:
  /// `seats` belong to one communicator, in ascending order; they outlive the object.
  explicit Exchange(std::span<const Seat> seats);

  /// Ranks of the communicator.
  int size() const { return size_; }

  /// `own` is what the ranks of this thread contribute, equally much each, one after the other. Returns that
  /// of all ranks, in the order of ranks.
  template <class T>
  std::vector<T> gather(std::span<const T> own) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::vector<std::byte> bytes = gatherBytes(std::as_bytes(own));
    std::vector<T> all(bytes.size() / sizeof(T));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }

  /// Returns when every rank has called it.
  void barrier();

 private:
  std::vector<std::byte> gatherBytes(std::span<const std::byte> own);

  std::span<const Seat> seats_;
  int size_ = 0;
  std::vector<Memory> staging_;  // of each seat: what it sends, then what it receives
};

}  // namespace tutti::device
