// How long a block whose threads all poll leaves the processor: two cores carry dozens of such blocks.
#pragma once

#include <sched.h>
#include <time.h>

namespace tutti::emulator {

class Patience {
 public:
  /// Something went on: the next wait is short again.
  void renew() { waits_ = 0; }

  void wait() {
    if (++waits_ <= kYields) {
      sched_yield();
      return;
    }
    const int doublings = waits_ - kYields < kMostDoublings ? waits_ - kYields : kMostDoublings;
    const timespec nap{0, kFirstNapNs << doublings};
    nanosleep(&nap, nullptr);
  }

 private:
  static constexpr int kYields = 50;
  static constexpr long kFirstNapNs = 1000;
  static constexpr int kMostDoublings = 6;  // 64 us, and what the timer adds
  int waits_ = 0;
};

}  // namespace tutti::emulator
