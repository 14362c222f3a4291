// The sticky fault of one communicator on one rank: the first cause wins, every wait looks at it.
#pragma once

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "nccl.h"

namespace tutti {

/// Set once, by any thread; read by all. `tripped()` costs one load and may be polled.
class FaultCell {
 public:
  /// Records the fault unless there is one already; true when this call was the first.
  bool trip(ncclResult_t code, std::string message) {
    int expected = kNone;
    // acq_rel: the winner alone may write the message; losers must not pass before the winner started.
    if (!state_.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel)) return false;
    code_ = code;
    message_ = std::move(message);
    state_.store(kSet, std::memory_order_release);  // publishes code_ and message_
    return true;
  }

  bool tripped() const { return state_.load(std::memory_order_acquire) == kSet; }

  /// Only after tripped().
  ncclResult_t code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  static constexpr int kNone = 0;
  static constexpr int kWriting = 1;
  static constexpr int kSet = 2;

  std::atomic<int> state_{kNone};
  ncclResult_t code_ = ncclSuccess;
  std::string message_;
};

}  // namespace tutti
