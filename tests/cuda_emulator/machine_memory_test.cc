// Memory of every space, calls, tables and atomic operations.
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/cuda_emulator/probe.h"

namespace tutti::emulator {
namespace {

class MachineMemory : public ProbeTest {};

INSTANTIATE_TEST_SUITE_P(Compute, MachineMemory, ::testing::Values(80, 90),
                         ::testing::PrintToStringParamName());

struct alignas(16) Sixteen {
  std::uint32_t at[4];
  bool operator==(const Sixteen&) const = default;
};

std::vector<std::uint8_t> randomBytes(std::size_t count) {
  std::mt19937 random(9);
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST_P(MachineMemory, vectorsAreCopiedWhole) {
  std::vector<Sixteen> from(1003);
  std::vector<Sixteen> to(1003);
  const auto bytes = randomBytes(from.size() * sizeof(Sixteen));
  std::memcpy(from.data(), bytes.data(), bytes.size());
  runKernel(*loadProbe("memory", GetParam()), "copyWide", shape(3, 64), to.data(), from.data(), 1003);
  EXPECT_EQ(to, from);
}

TEST_P(MachineMemory, narrowVectorsAndBytesAtAnyAddress) {
  const auto from = randomBytes(101);
  std::vector<std::uint8_t> to(101);
  alignas(8) std::uint16_t fours[4 * 100];
  for (std::size_t i = 0; i < std::size(fours); ++i) fours[i] = static_cast<std::uint16_t>(i * 131);
  alignas(8) std::uint32_t pairs[2 * 100];
  runKernel(*loadProbe("memory", GetParam()), "copyMixed", shape(1, 128), to.data() + 1, from.data() + 1,
            &pairs[0], &fours[0], 100);
  EXPECT_TRUE(std::equal(to.begin() + 1, to.end(), from.begin() + 1));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(pairs[2 * i], fours[4 * i] | std::uint32_t{fours[4 * i + 1]} << 16);
    EXPECT_EQ(pairs[2 * i + 1], fours[4 * i + 2] * 3u + fours[4 * i + 3]);
  }
}

TEST_P(MachineMemory, sharedMemoryIsTheBlocks) {
  constexpr std::uint32_t kBlocks = 7;
  std::vector<int> in(std::size_t{kBlocks} * 256);
  std::iota(in.begin(), in.end(), -400);
  std::vector<int> out(std::size_t{2} * kBlocks);
  runKernel(*loadProbe("memory", GetParam()), "reduceBlock", shape(kBlocks, 256, 1024), out.data(),
            in.data());
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(block * 256);
    const int sum = std::accumulate(begin, begin + 256, 0);
    EXPECT_EQ(out[2 * block], sum);
    EXPECT_EQ(out[2 * block + 1], -sum);
  }
}

struct Big {
  double scale;
  int shift[5];
  char sign;
};

int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

std::vector<double> expectedCalls(const Big& big, int n) {
  const float table[] = {0.5f, 1.5f, 2.5f, 3.5f};
  std::vector<double> out(16);
  out[0] = big.scale * n + (big.shift[n % 5] + 7) * 1000 - big.sign * 100000;
  out[1] = fibonacci(n);
  out[2] = n % 2 == 0 ? n : n * n;
  out[3] = n % 2 == 0 ? 3 * n : -n;
  for (int i = 0; i < 12; ++i) {
    const double values[] = {out[0],
                             n * 2.0,
                             double{table[i & 3]},
                             double(fibonacci(i)),
                             -1.0 * n,
                             double(big.shift[i % 5]),
                             1.0 / n,
                             out[1] + i,
                             5,
                             99};
    out[4 + static_cast<std::size_t>(i)] = values[(n + i) % 10];
  }
  return out;
}

TEST_P(MachineMemory, callsByEveryRoad) {
  const Big big{1.25, {10, 20, 30, 40, 50}, 3};
  for (const int n : {6, 7}) {
    std::vector<double> out(16);
    runKernel(*loadProbe("memory", GetParam()), "callAround", shape(1, 1), out.data(), big, n);
    EXPECT_EQ(out, expectedCalls(big, n));
  }
}

TEST_P(MachineMemory, localArraysAreTheThreads) {
  std::mt19937 random(1);
  std::vector<int> in(std::size_t{64} * 16);
  for (int& x : in) x = static_cast<int>(random() % 1000);
  std::vector<int> out(in.size());
  runKernel(*loadProbe("memory", GetParam()), "sortOwn", shape(1, 64), out.data(), in.data(), 16);
  for (auto at = in.begin(); at != in.end(); at += 16) std::sort(at, at + 16);
  EXPECT_EQ(out, in);
}

TEST_P(MachineMemory, variablesAreTheModulesAndTheHosts) {
  const auto module = loadProbe("memory", GetParam());
  const auto other = loadProbe("memory", GetParam());
  std::size_t bytes = 0;
  auto* table = module->variable("table", &bytes);
  ASSERT_EQ(bytes, 16u);
  const float changed = 40;
  std::memcpy(table + 4, &changed, sizeof changed);
  std::vector<int> out(3);
  runKernel(*module, "setVariables", shape(1, 1), out.data());
  EXPECT_EQ(out, (std::vector<int>{5, 17, 80}));
  int counter = 0;
  std::memcpy(&counter, module->variable("device_counter", nullptr), sizeof counter);
  EXPECT_EQ(counter, 17);
  runKernel(*other, "setVariables", shape(1, 1), out.data());
  EXPECT_EQ(out, (std::vector<int>{5, 17, 3})) << "two modules of one text share nothing";
  EXPECT_EQ(module->variable("none", nullptr), nullptr);
  EXPECT_EQ(module->kernel("none"), nullptr);
}

TEST_P(MachineMemory, atomicOperationsLoseNothing) {
  constexpr std::uint32_t kBlocks = 5;
  constexpr std::uint32_t kThreads = 96;
  constexpr std::uint32_t kAll = kBlocks * kThreads;
  std::vector<std::uint32_t> words(12);
  words[3] = words[4] = ~0u;
  std::uint64_t wide = 0;
  float single = 0;
  double real = 0;
  int lowest = 1000;
  runKernel(*loadProbe("memory", GetParam()), "atomics", shape(kBlocks, kThreads), words.data(), &wide,
            &single, &real, &lowest);
  std::uint32_t most = 0, least = ~0u, mixed = 0, chain = 0;
  for (std::uint32_t i = 0; i < kAll; ++i) {
    most = std::max(most, i * 2654435761u);
    least = std::min(least, i * 2654435761u);
    mixed ^= i;
    chain = chain * 5 + 1;
  }
  // atomicDec from 0 wraps to 99 and counts down.
  const std::uint32_t down = (100 - kAll % 100) % 100;
  EXPECT_EQ(words, (std::vector<std::uint32_t>{kAll * (kAll - 1) / 2, 0u - 3 * kAll, most, least, 0,
                                               0x7fffffff, mixed, kAll % 100, down, chain, kThreads, kAll}));
  EXPECT_EQ(wide, std::uint64_t{kAll} * (kAll - 1) / 2 << 32);
  EXPECT_EQ(single, static_cast<float>(kAll));
  EXPECT_EQ(real, kAll * 0.5);
  EXPECT_EQ(lowest, -50);
}

TEST_P(MachineMemory, threadsKnowTheirPlace) {
  const LaunchShape wanted{{2, 3, 2}, {5, 4, 3}, 48};
  std::vector<std::uint32_t> out(std::size_t{4} * 12 * 60);
  runKernel(*loadProbe("memory", GetParam()), "whoAmI", wanted, out.data());
  for (std::uint32_t i = 0; i < 12 * 60; ++i) {
    const std::uint32_t thread = i % 60;
    const std::uint32_t* own = &out[std::size_t{4} * i];
    EXPECT_EQ(own[0], i / 60 * 10000 + thread);
    EXPECT_EQ(own[1], thread % 32);
    EXPECT_EQ(own[2], thread / 32);
    EXPECT_EQ(own[3], 48u);
  }
}

TEST(MachineGrids, aThousandBlocksAndMore) {
  std::vector<Sixteen> from(std::size_t{3000} * 64);
  std::vector<Sixteen> to(from.size());
  for (std::uint32_t i = 0; i < from.size(); ++i) from[i] = {i, i * 3, i * 5, i * 7};
  runKernel(*loadProbe("memory", 90), "copyWide", shape(3000, 64), to.data(), from.data(),
            static_cast<int>(from.size()));
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace tutti::emulator
