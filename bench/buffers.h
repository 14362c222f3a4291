// One rank's two buffers, with room for guards and shifts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/registration.h"
#include "bench/verify.h"
#include "tools/device/memory.h"
#include "tools/device/seat.h"

namespace tutti::perf {

/// Memory that operations work on: of the library (ncclMemAlloc) in host memory and where it is to be
/// registered, else plain memory of the GPU.
class PerfBuffer {
 public:
  PerfBuffer(const device::Seat& seat, std::size_t bytes, bool registered) {
    if (registered || seat.device().kind() == device::Kind::host) {
      seat.device().makeCurrent();
      library_.emplace(bytes);
    } else {
      plain_ = device::Memory(seat.device(), bytes);
    }
    // Host memory that was never written is one shared page of zeros, and faster than it should be. 0x3f
    // makes ordinary numbers in every type: no NaN, nothing subnormal.
    seat.device().fill(data(), kOrdinary, bytes, seat.stream());
    if (registered) registration_.emplace(seat.comm(), data(), bytes);
  }

  std::byte* data() const { return library_ ? library_->data() : plain_.data(); }

 private:
  static constexpr std::uint8_t kOrdinary = 0x3f;

  std::optional<Buffer> library_;
  device::Memory plain_;
  std::optional<Registration> registration_;  // ends before the memory
};

/// `send` holds the input of out-of-place runs; `recv` their output, and both sides of in-place runs.
class RankBuffers {
 public:
  /// Room for `bytes` each. `shift_bytes` moves both away from their page-aligned starts.
  /// `registered` = both are registered with the communicator while they live.
  RankBuffers(const device::Seat& seat, std::size_t bytes, std::size_t shift_bytes, bool registered)
      : start_(kMargin + shift_bytes),
        send_(seat, bytes + shift_bytes + 2 * kMargin, registered),
        recv_(seat, bytes + shift_bytes + 2 * kMargin, registered) {}

  std::byte* send() const { return send_.data() + start_; }
  std::byte* recv() const { return recv_.data() + start_; }

 private:
  /// A page, so that guards do not spoil the alignment.
  static constexpr std::size_t kMargin = 4096;
  static_assert(kMargin >= kGuardBytes);

  std::size_t start_;
  PerfBuffer send_;
  PerfBuffer recv_;
};

}  // namespace tutti::perf
