// One end of the link that is measured: a rank of two, and its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/buffers.h"
#include "bench/statistics.h"
#include "tools/device/exchange.h"
#include "tools/device/seat.h"

namespace tutti::perf {

/// Of messages one after another from rank 0 to rank 1.
struct Bandwidth {
  std::size_t iterations = 0;
  double peak_bytes_per_s = 0;  ///< the fastest fifth of the messages, as they arrived
  double average_bytes_per_s = 0;
  double messages_per_s = 0;
};

/// Used by one thread. Both ranks call the same in the same order; results are rank 0's, which alone reports
/// (the other gets what it measured itself).
class Link {
 public:
  struct Buffers {
    std::size_t bytes;  ///< of the largest message
    bool registered;
  };
  Link(const device::Seat& seat, const Buffers& buffers);

  int rank() const { return rank_; }

  /// From the first send to the word of rank 1 that it has all.
  Bandwidth bandwidth(std::size_t bytes, std::size_t warmup, std::size_t iterations);
  /// Half of the time there and back, of each message.
  IterationStats latency(std::size_t bytes, std::size_t warmup, std::size_t iterations);

  /// One message each way, of bytes that no earlier message had; returns how many of all that arrived were
  /// wrong, those behind the message's end that changed included. `corrupt`: rank 1 alters that byte first.
  std::uint64_t countWrong(std::size_t bytes, std::optional<std::size_t> corrupt);

 private:
  void send(std::size_t bytes);
  void receive(std::size_t bytes);
  void meet();
  void fill(std::byte* at, std::size_t bytes, std::uint64_t seed);
  std::uint64_t wrongOf(std::size_t bytes, std::uint64_t seed, std::optional<std::size_t> corrupt);

  const device::Seat& seat_;
  int rank_;
  device::Exchange exchange_;
  std::size_t largest_;
  RankBuffers buffers_;
  std::uint64_t checks_ = 0;
};

}  // namespace tutti::perf
