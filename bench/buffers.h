// One rank's two buffers, with room for guards and shifts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <list>

#include "bench/registration.h"
#include "bench/verify.h"
#include "tutti/tutti.h"

namespace tutti::perf {

/// `send` holds the input of out-of-place runs; `recv` their output, and both sides of in-place runs.
class RankBuffers {
 public:
  /// Room for `bytes` each. `shift_bytes` moves both away from their page-aligned starts.
  /// `registered` = both are registered with `comm` while they live.
  RankBuffers(std::size_t bytes, std::size_t shift_bytes, ncclComm_t comm, bool registered)
      : start_(kMargin + shift_bytes),
        send_(bytes + shift_bytes + 2 * kMargin),
        recv_(bytes + shift_bytes + 2 * kMargin) {
    // Memory that was never written is one shared page of zeros, and faster than it should be. 0x3f makes
    // ordinary numbers in every type: no NaN, nothing subnormal.
    for (const Buffer* buffer : {&send_, &recv_}) {
      std::memset(buffer->data(), 0x3f, buffer->bytes());
      if (registered) registrations_.emplace_back(comm, buffer->data(), buffer->bytes());
    }
  }

  std::byte* send() const { return send_.data() + start_; }
  std::byte* recv() const { return recv_.data() + start_; }

 private:
  /// A page, so that guards do not spoil the alignment.
  static constexpr std::size_t kMargin = 4096;
  static_assert(kMargin >= kGuardBytes);

  std::size_t start_;
  Buffer send_;
  Buffer recv_;
  std::list<Registration> registrations_;  // end before the memory
};

}  // namespace tutti::perf
