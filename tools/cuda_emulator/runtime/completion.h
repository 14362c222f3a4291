// The one thing that streams, events and graphs wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

namespace tutti::emulator {

/// Set once, by whoever did the work; awaited by any number of threads. What the worker wrote before
/// complete() (release) is seen after wait(), or after done() said true (acquire).
class Completion {
 public:
  using Clock = std::chrono::steady_clock;

  void complete() {
    time_ = Clock::now();
    done_.store(true, std::memory_order_release);
    done_.notify_all();
  }
  bool done() const { return done_.load(std::memory_order_acquire); }
  void wait() const { done_.wait(false, std::memory_order_acquire); }
  /// Only once it is done.
  Clock::time_point time() const { return time_; }

 private:
  std::atomic<bool> done_{false};
  Clock::time_point time_;
};

/// Whoever completes it holds it too, so that a waiter who lets go of it first does no harm.
using CompletionPtr = std::shared_ptr<Completion>;

}  // namespace tutti::emulator
