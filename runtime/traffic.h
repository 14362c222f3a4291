// What a communicator has moved, counted.
#pragma once

#include <atomic>
#include <cstdint>

#include "tutti/statistics.h"

namespace tutti {

/// Written by the thread that has the communicator's turn, one at a time; read by any.
class Traffic {
 public:
  /// `moved`: what an executor counted (MovedData).
  template <class Moved>
  void add(const Moved& moved) {
    grow(slots_, moved.slots);
    grow(slot_bytes_, moved.slot_bytes);
    grow(read_bytes_, moved.read_bytes);
    grow(written_bytes_, moved.written_bytes);
    grow(network_bytes_, moved.network_bytes);
  }
  void addOperation() { grow(operations_, 1); }

  tuttiStatistics_t statistics() const {
    tuttiStatistics_t result{};
    result.operations = operations_.load(std::memory_order_relaxed);
    result.slots_posted = slots_.load(std::memory_order_relaxed);
    result.payload_slot_bytes = slot_bytes_.load(std::memory_order_relaxed);
    result.payload_read_bytes = read_bytes_.load(std::memory_order_relaxed);
    result.payload_written_bytes = written_bytes_.load(std::memory_order_relaxed);
    result.payload_network_bytes = network_bytes_.load(std::memory_order_relaxed);
    return result;
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  /// One writer at a time, so no locked instruction is needed.
  static void grow(Count& count, std::uint64_t by) {
    count.store(count.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  Count operations_{0};
  Count slots_{0};
  Count slot_bytes_{0};
  Count read_bytes_{0};
  Count written_bytes_{0};
  Count network_bytes_{0};
};

}  // namespace tutti
