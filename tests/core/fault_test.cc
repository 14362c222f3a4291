#include "runtime/core/fault.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "runtime/core/rank_status.h"
#include "runtime/core/wait.h"

namespace tutti {
namespace {

TEST(FaultCell, FirstCauseWinsAmongManyThreads) {
  for (int round = 0; round < 200; ++round) {
    FaultCell cell;
    std::atomic<int> winners{0};
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (cell.trip(ncclRemoteError, "cause " + std::to_string(i))) ++winners;
      });
    }
    while (!cell.tripped()) std::this_thread::yield();
    const std::string seen = cell.message();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(cell.message(), seen);
  }
}

struct CountingMonitor final : WaitMonitor {
  explicit CountingMonitor(FaultCell& cell) : fault(cell) {}
  void inspect(int peer, std::chrono::nanoseconds waited) override {
    EXPECT_EQ(peer, 5);
    EXPECT_GT(waited.count(), 0);
    if (++inspections == 3) fault.trip(ncclRemoteError, "enough");
  }
  void differs(int, const Descriptor&) override { FAIL() << "nothing differs here"; }
  bool isLending(int) override { return true; }
  FaultCell& fault;
  int inspections = 0;
};

TEST(Wait, AsksTheMonitorAndEndsOnAFault) {
  FaultCell fault;
  CountingMonitor monitor(fault);
  const WaitContext wait{fault, monitor, 10};
  EXPECT_TRUE(wait.until(5, [] { return true; }));
  EXPECT_FALSE(wait.until(5, [] { return false; }));
  EXPECT_EQ(monitor.inspections, 3);
}

TEST(RankStatus, ReaderGetsWholeDescriptorsOnly) {
  auto status = std::make_unique<RankStatus>();
  constexpr std::uint64_t kOperations = 200'000;
  std::thread writer([&] {
    for (std::uint64_t k = 1; k <= kOperations; ++k) {
      status->enter(k, {.root = static_cast<std::int32_t>(k), .count = k});
    }
  });
  std::uint64_t reads = 0;
  for (;;) {
    const std::uint64_t k = status->entered.load();
    Descriptor seen;
    if (k > 0 && status->readDescriptor(k, seen)) {
      ASSERT_EQ(seen.count, k);
      ASSERT_EQ(seen.root, static_cast<std::int32_t>(k));
      ++reads;
    }
    if (k == kOperations) break;
  }
  writer.join();
  EXPECT_GT(reads, 0U);
}

}  // namespace
}  // namespace tutti
