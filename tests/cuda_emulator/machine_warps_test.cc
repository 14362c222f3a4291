// Shuffles, votes, matches and reductions against loops over the lanes.
#include <algorithm>
#include <random>

#include "tests/cuda_emulator/probe.h"

namespace tutti::emulator {
namespace {

using Words = std::vector<std::uint32_t>;

class MachineWarps : public ProbeTest {};

INSTANTIATE_TEST_SUITE_P(Compute, MachineWarps, ::testing::Values(80, 90),
                         ::testing::PrintToStringParamName());

Words randomWords(std::size_t count) {
  std::mt19937 random(21);
  Words words(count);
  for (auto& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

/// The lane that gives to `lane`, by what CUDA's guide says of each shuffle within segments of `width`.
int source(int kind, int lane, int width, int by) {
  const int begin = lane / width * width;
  switch (kind) {
    case 0:
      return lane - by < begin ? lane : lane - by;
    case 1:
    case 4:
      return lane + by >= begin + width ? lane : lane + by;
    // Lanes may read from earlier segments, not from later ones.
    case 2:
      return (lane ^ by) >= begin + width ? lane : lane ^ by;
    default:
      return begin + by % width;
  }
}

TEST_P(MachineWarps, shufflesInSegments) {
  const Words in = randomWords(128);
  const auto module = loadProbe("warps", GetParam());
  for (const int width : {2, 8, 16, 32}) {
    for (int by = 0; by < width; ++by) {
      Words out(in.size() * 5);
      runKernel(*module, "shuffles", shape(2, 64), out.data(), in.data(), width, by);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t thread = i % in.size();
        const int kind = static_cast<int>(i / in.size());
        const int from = source(kind, static_cast<int>(thread % 32), width, by);
        ASSERT_EQ(out[i], in[thread / 32 * 32 + static_cast<std::size_t>(from)])
            << "kind " << kind << " width " << width << " by " << by << " thread " << thread;
      }
    }
  }
}

TEST_P(MachineWarps, votesOfTheLanesInTheMask) {
  const Words in = randomWords(32);
  Words out(std::size_t{4} * 32);
  runKernel(*loadProbe("warps", GetParam()), "votes", shape(1, 32), out.data(), in.data());
  for (std::size_t i = 0; i < 32; ++i) {
    std::uint32_t ballot = 0, same = 0;
    bool any = false, all = true;
    for (std::size_t j = 0; j < 32; ++j) {
      same |= in[j] % 5 == in[i] % 5 ? 1u << j : 0;
      if (j % 2 != i % 2) continue;
      ballot |= (in[j] & 1) << j;
      any = any || (in[j] & 2) != 0;
      all = all && (in[j] & 4) != 0;
    }
    EXPECT_EQ(out[4 * i], ballot);
    EXPECT_EQ(out[4 * i + 1] != 0, any);
    EXPECT_EQ(out[4 * i + 2] != 0, all);
    EXPECT_EQ(out[4 * i + 3], same);
  }
}

TEST_P(MachineWarps, reductionsOfAWarp) {
  const Words in = randomWords(32);
  Words out(std::size_t{8} * 32);
  runKernel(*loadProbe("warps", GetParam()), "reductions", shape(1, 32), out.data(), in.data());
  Words expected{0, ~0u, 0, ~0u, 0, 0, 0, 0};
  std::vector<std::int32_t> signed_in;
  for (const std::uint32_t x : in) {
    expected[0] += x;
    expected[1] = std::min(expected[1], x);
    expected[2] = std::max(expected[2], x);
    expected[3] &= x;
    expected[4] |= x;
    expected[5] ^= x;
    signed_in.push_back(static_cast<std::int32_t>(x));
  }
  expected[6] = static_cast<std::uint32_t>(*std::min_element(signed_in.begin(), signed_in.end()));
  expected[7] = static_cast<std::uint32_t>(*std::max_element(signed_in.begin(), signed_in.end()));
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], expected[i % 8]) << i;
}

TEST_P(MachineWarps, lanesThatEndedAreNotWaitedFor) {
  Words out(48, 7);
  runKernel(*loadProbe("warps", GetParam()), "partialWarp", shape(1, 48), out.data(), 48u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 31u * 16) << i;
  Words fewer(32, 7);
  runKernel(*loadProbe("warps", GetParam()), "partialWarp", shape(1, 32), fewer.data(), 16u);
  for (std::size_t i = 16; i < 32; ++i) EXPECT_EQ(fewer[i], 7u) << i;
}

TEST_P(MachineWarps, barriersThatCount) {
  std::vector<int> in(160);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i % 3 == 0) + (i == 77 ? 2 : 0) + 4;
  for (const bool all : {true, false}) {
    in[9] &= all ? 7 : 3;
    std::vector<int> out(3 * in.size());
    runKernel(*loadProbe("warps", GetParam()), "blockVotes", shape(1, 160), out.data(), in.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      EXPECT_EQ(out[3 * i], 54);
      EXPECT_EQ(out[3 * i + 1], 1);
      EXPECT_EQ(out[3 * i + 2], all ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace tutti::emulator
