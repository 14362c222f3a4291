// What ranks tell each other beside their work: through the library itself, wherever its buffers live.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "tools/device/device.h"
#include "tools/device/memory.h"
#include "tutti/tutti.h"

namespace tutti::device {

/// A rank as its thread drives it.
struct LocalRank {
  ncclComm_t comm = nullptr;
  Device* device = nullptr;
  cudaStream_t stream = nullptr;
};

/// `call(i)` for each of `count` ranks of this thread; in one group where they are several, because none is
/// done without the others. Nothing is carried out when a call throws.
template <class Call>
void inOneGroup(std::size_t count, const Call& call) {
  if (count == 1) return call(0);
  Group group;
  for (std::size_t i = 0; i < count; ++i) call(i);
  group.end();
}

/// Waits for what is queued on the rank's stream. Throws the communicator's error, where it has one.
void finish(const LocalRank& rank);

/// All ranks of one thread together. All ranks of the communicator call the same in the same order.
class Exchange {
 public:
  /// `ranks` belong to one communicator, in ascending order; they outlive the object.
  explicit Exchange(std::span<const LocalRank> ranks);

  int size() const { return size_; }

  /// `own` is what the local ranks contribute, equally much each, one after the other. Returns that of all
  /// ranks, in the order of ranks.
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

  std::span<const LocalRank> ranks_;
  int size_ = 0;
  std::vector<Memory> staging_;  // of each local rank: what it sends, then what it receives
};

}  // namespace tutti::device
