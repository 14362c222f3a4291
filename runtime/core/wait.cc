#include "runtime/core/wait.h"

#include <sched.h>

#include <algorithm>
#include <ctime>

namespace tutti {
namespace {

constexpr std::uint32_t kYieldsBetweenClockReads = 16;
constexpr auto kYieldFor = std::chrono::milliseconds(2);
constexpr auto kInspectEvery = std::chrono::milliseconds(20);
// A nap is a sixteenth of what the wait has lasted: what it adds is small against that, and many waiting
// ranks do not take the cores from those that work.
constexpr int kWaitPerNap = 16;
constexpr std::chrono::nanoseconds kShortestNap = std::chrono::microseconds(100);
constexpr std::chrono::nanoseconds kLongestNap = std::chrono::milliseconds(10);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace

bool Pace::step(Progress* progress) {
  if (steps_++ < spins_) {
    pause();
    return false;
  }
  const std::uint32_t yields = steps_ - spins_;
  if (yields == 1) {
    started_ = std::chrono::steady_clock::now();
    next_inspection_ = started_ + kInspectEvery;
    time_.start(started_);
  }
  if (yields % kYieldsBetweenClockReads != 0) {
    ::sched_yield();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - started_ > kYieldFor) {
    const std::chrono::nanoseconds nap =
        std::clamp<std::chrono::nanoseconds>((now - started_) / kWaitPerNap, kShortestNap, kLongestNap);
    if (progress != nullptr) {
      progress->nap(nap);
    } else {
      const timespec time{0, nap.count()};
      ::nanosleep(&time, nullptr);
    }
    steps_ = spins_ + kYieldsBetweenClockReads - 1;  // from here on every step reads the clock and sleeps
  }
  if (now < next_inspection_) return false;
  next_inspection_ = now + kInspectEvery;
  time_.look(now);
  return true;
}

}  // namespace tutti
