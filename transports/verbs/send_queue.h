// What is under way on the send queues of a link's end, and since when nothing was acknowledged.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace tutti {

/// Requests are acknowledged in order on each queue pair; not every one is asked to be. Counts, no memory.
class SendQueue {
 public:
  using Clock = std::chrono::steady_clock;

  void restart(std::uint32_t pairs, std::uint32_t depth) {
    pairs_.assign(pairs, {});
    depth_ = depth;
    unsignalled_limit_ = depth / 4;
    outstanding_ = 0;
  }
  bool hasRoom(std::uint32_t pair, std::uint32_t requests) const {
    return pairs_[pair].posted - pairs_[pair].done + requests <= depth_;
  }
  /// Whether the request is to be acknowledged, though more follow.
  bool wantsSignal(std::uint32_t pair) const { return pairs_[pair].unsignalled >= unsignalled_limit_; }

  /// `requests` were posted, of which the last is acknowledged if `is_signalled`. Returns what its completion
  /// is to bring back.
  std::uint64_t posted(std::uint32_t pair, std::uint32_t requests, bool is_signalled, Clock::time_point now) {
    Pair& queue = pairs_[pair];
    if (outstanding_ == 0) progress_ = now;
    queue.posted += requests;
    queue.unsignalled = is_signalled ? 0 : queue.unsignalled + requests;
    if (is_signalled) ++outstanding_;
    return ticket(pair);
  }
  /// What posted() will return for `requests` more.
  std::uint64_t ticketAfter(std::uint32_t pair, std::uint32_t requests) const {
    return (pairs_[pair].posted + requests) << 8 | pair;
  }
  void completed(std::uint64_t ticket, Clock::time_point now) {
    pairs_[ticket & 0xff].done = ticket >> 8;
    --outstanding_;
    progress_ = now;
  }
  /// Acknowledgements are to come.
  bool isBusy() const { return outstanding_ != 0; }
  bool isSilentFor(std::chrono::milliseconds limit, Clock::time_point now) const {
    return isBusy() && now - progress_ > limit;
  }

 private:
  struct Pair {
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::uint32_t unsignalled = 0;
  };

  std::uint64_t ticket(std::uint32_t pair) const { return pairs_[pair].posted << 8 | pair; }

  std::vector<Pair> pairs_;
  std::uint32_t depth_ = 0;
  std::uint32_t unsignalled_limit_ = 0;
  std::uint64_t outstanding_ = 0;
  Clock::time_point progress_{};
};

}  // namespace tutti
