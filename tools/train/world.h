// The ranks of a run, as one of them sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/device/exchange.h"
#include "tools/device/seat.h"
#include "tutti/launch.h"

namespace tutti::train {

/// All methods but the first three are collective: all ranks call them in the same order. Throws Error when
/// the library or the device fails.
class World {
 public:
  /// Joins the ranks of `launch`, each on the device that its number on the host gives it.
  World(const device::Devices& devices, const tuttiLaunch_t& launch);

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return static_cast<std::size_t>(exchange_.size()); }
  /// Where this rank's operations go.
  const device::Seat& seat() const { return seats_.front(); }

  /// `bytes` of every rank, equally many, one rank after the other.
  std::vector<std::byte> gatherBytes(std::span<const std::byte> bytes) { return exchange_.gather(bytes); }
  std::vector<std::uint64_t> gatherWords(std::span<const std::uint64_t> words) {
    return exchange_.gather(words);
  }
  void barrier() { exchange_.barrier(); }

 private:
  std::size_t rank_;
  std::vector<device::Seat> seats_;  // one
  device::Exchange exchange_;
};

}  // namespace tutti::train
