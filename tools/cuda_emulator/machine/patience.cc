#include "tools/cuda_emulator/machine/patience.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <ctime>

namespace tutti::emulator {
namespace {

constexpr int kYields = 50;  // by a block that waits alone
constexpr int kLeastYields = 4;
constexpr long kFirstNapNs = 2'000;
constexpr int kDoublings = 5;     // to 64 us
constexpr int kBlocksPerNap = 8;  // so many waiting blocks, so many times as long
constexpr long kLongestNapNs = 1'000'000;

/// Blocks of this process that wait now.
std::atomic<int> waiting_blocks{0};

}  // namespace

void Patience::wait() {
  if (++waits_ == 1) waiting_blocks.fetch_add(1, std::memory_order_relaxed);
  const int company = waiting_blocks.load(std::memory_order_relaxed);
  const int yields = std::max(kLeastYields, kYields / company);
  if (waits_ <= yields) {
    sched_yield();
    return;
  }
  const long longest = std::min(kLongestNapNs, (kFirstNapNs << kDoublings) * (1 + company / kBlocksPerNap));
  const timespec nap{0, std::min(longest, kFirstNapNs << std::min(waits_ - yields - 1, 20))};
  nanosleep(&nap, nullptr);
}

void Patience::stopWaiting() {
  waits_ = 0;
  waiting_blocks.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tutti::emulator
