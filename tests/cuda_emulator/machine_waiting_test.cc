// Blocks and kernels that wait for each other, all at once on a few cores.
#include <thread>

#include "tests/cuda_emulator/probe.h"

namespace tutti::emulator {
namespace {

class MachineWaiting : public ProbeTest {};

INSTANTIATE_TEST_SUITE_P(Compute, MachineWaiting, ::testing::Values(80, 90),
                         ::testing::PrintToStringParamName());

TEST_P(MachineWaiting, twoKernelsPassDataByFlags) {
  constexpr int kRounds = 200;
  constexpr std::uint32_t kThreads = 64;
  std::vector<std::uint32_t> data(kThreads);
  std::vector<std::uint64_t> sums(kThreads);
  std::uint64_t posted = 0;
  std::uint64_t credit = 0;
  const auto module = loadProbe("waiting", GetParam());
  std::thread consumer([&] {
    runKernel(*module, "consume", shape(1, kThreads), data.data(), &posted, &credit, sums.data(), kRounds);
  });
  runKernel(*module, "produce", shape(1, kThreads), data.data(), &posted, &credit, kRounds);
  consumer.join();
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(sums[i], 1000u * kRounds * (kRounds + 1) / 2 + kRounds * i);
  }
}

TEST_P(MachineWaiting, blocksOfTwoGridsWaitForEachOther) {
  constexpr int kRounds = 5;
  const auto module = loadProbe("waiting", GetParam());
  std::uint32_t arrived[2] = {};
  std::uint32_t wrong[2] = {};
  std::vector<std::thread> grids;
  grids.reserve(2);
  for (int grid = 0; grid < 2; ++grid) {
    grids.emplace_back([&, grid] {
      runKernel(*module, "gridBarrier", shape(64, 64), &arrived[grid], &wrong[grid], kRounds);
    });
  }
  for (auto& grid : grids) grid.join();
  for (int grid = 0; grid < 2; ++grid) {
    EXPECT_EQ(arrived[grid], 64u * kRounds);
    EXPECT_EQ(wrong[grid], 0u);
  }
}

TEST_P(MachineWaiting, namedBarriersMeetHalfABlock) {
  constexpr int kRounds = 20;
  std::vector<int> out(64);
  runKernel(*loadProbe("waiting", GetParam()), "namedBarriers", shape(1, 128), out.data(), kRounds);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(i)], 10 * kRounds * (kRounds - 1) / 2 + kRounds * (63 - i));
  }
}

TEST_P(MachineWaiting, threadsThatLeftAreNotWaitedFor) {
  for (const int stay : {1, 33, 256}) {
    std::vector<int> out(256);
    runKernel(*loadProbe("waiting", GetParam()), "leaveEarly", shape(1, 256), out.data(), stay);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i < stay ? 42 : 0);
  }
}

TEST_P(MachineWaiting, timePassesForKernels) {
  std::vector<std::uint64_t> waited(32);
  runKernel(*loadProbe("waiting", GetParam()), "waitFor", shape(1, 32), std::uint64_t{2'000'000},
            waited.data());
  for (const std::uint64_t ns : waited) EXPECT_GE(ns, 2'000'000u);
}

}  // namespace
}  // namespace tutti::emulator
