// The formulas of the *_perf programs against hand-made figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/sizes.h"
#include "bench/statistics.h"
#include "tools/device/host_memory.h"

namespace tutti::perf {
namespace {

TEST(Sizes, AreReadWithSuffixesAndFractions) {
  const std::vector<std::pair<std::string, std::size_t>> good{{"0", 0},
                                                              {"8", 8},
                                                              {"1K", 1024},
                                                              {"64k", 65536},
                                                              {"1.5M", 1572864},
                                                              {"2G", 2147483648},
                                                              {"1T", 1099511627776},
                                                              {"0.5K", 512},
                                                              {"9007199254740993", 9007199254740993}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(parseSize(text), bytes) << text;
  for (const char* text :
       {"", "K", "-1", "-0.5K", "1KB", "1 K", "1X", "K1", "1M1", "inf", "nan", "1e30", "9999999T"}) {
    EXPECT_THROW(parseSize(text), std::invalid_argument) << text;
  }
}

TEST(Sizes, StepThroughTheRange) {
  EXPECT_EQ(sizesOf({.min = 4, .max = 64, .factor = 4}), (std::vector<std::size_t>{4, 16, 64}));
  EXPECT_EQ(sizesOf({.min = 4, .max = 65, .factor = 4}), (std::vector<std::size_t>{4, 16, 64}));
  EXPECT_EQ(sizesOf({.min = 0, .max = 20, .factor = 2}), (std::vector<std::size_t>{0, 8, 16}));
  EXPECT_EQ(sizesOf({.min = 10, .max = 30, .step = 10}), (std::vector<std::size_t>{10, 20, 30}));
  EXPECT_EQ(sizesOf({.min = 0, .max = 0, .step = 0}), (std::vector<std::size_t>{0}));
  EXPECT_EQ(sizesOf({.min = 1, .max = SIZE_MAX, .factor = std::size_t{1} << 40}),
            (std::vector<std::size_t>{1, std::size_t{1} << 40}));
  EXPECT_THROW(sizesOf({.min = 2, .max = 1}), std::invalid_argument);
  EXPECT_THROW(sizesOf({.min = 1, .max = 2, .step = 0}), std::invalid_argument);
}

TEST(Sizes, LargestMessageLeavesAQuarter) {
  EXPECT_EQ(largestMessage(800, 2, 1), 300U);
  EXPECT_EQ(largestMessage(800, 2, 4), 75U);
  EXPECT_GT(device::freeHostBytes(), std::uint64_t{1} << 20);
}

TEST(Collective, BusFactorsAreThoseOfTheDocument) {
  EXPECT_DOUBLE_EQ(kAllReduce.busFactor(2), 1.0);
  EXPECT_DOUBLE_EQ(kAllReduce.busFactor(4), 1.5);
  EXPECT_DOUBLE_EQ(kAllReduce.busFactor(8), 1.75);
  EXPECT_DOUBLE_EQ(kReduceScatter.busFactor(4), 0.75);
  EXPECT_DOUBLE_EQ(kAllGather.busFactor(8), 0.875);
  EXPECT_DOUBLE_EQ(kBroadcast.busFactor(8), 1.0);
  EXPECT_DOUBLE_EQ(kReduce.busFactor(8), 1.0);
  EXPECT_DOUBLE_EQ(kSendRecv.busFactor(8), 1.0);
  EXPECT_DOUBLE_EQ(kAllToAll.busFactor(4), 0.75);
  EXPECT_DOUBLE_EQ(kAllToAllV.busFactor(4), 0.75);
  EXPECT_DOUBLE_EQ(kGather.busFactor(4), 0.75);
  EXPECT_DOUBLE_EQ(kScatter.busFactor(8), 0.875);
  EXPECT_DOUBLE_EQ(kHypercube.busFactor(8), 1.0);
  EXPECT_DOUBLE_EQ(kHypercube.algBytes(800, 8), 700);
  EXPECT_DOUBLE_EQ(kAllGather.algBytes(800, 8), 800);
  EXPECT_DOUBLE_EQ(kAllReduce.busFactor(1), 0.0);
  EXPECT_DOUBLE_EQ(gigabytesPerSecond(1e9, 1e6), 1.0);  // a decimal gigabyte in a second
  EXPECT_DOUBLE_EQ(gigabytesPerSecond(1048576, 100) * kAllReduce.busFactor(4), 15.72864);
}

TEST(Collective, LayoutsRoundBlocksToSixteenBytes) {
  const Layout reduce = kAllReduce.layout(103, 4, 3, 1);
  EXPECT_EQ((std::vector<std::size_t>{reduce.param, reduce.send, reduce.recv}),
            (std::vector<std::size_t>{25, 25, 25}));
  const Layout scatter = kReduceScatter.layout(103, 4, 3, 2);
  EXPECT_EQ((std::vector<std::size_t>{scatter.param, scatter.send, scatter.recv, scatter.in_place_send,
                                      scatter.in_place_recv}),
            (std::vector<std::size_t>{8, 24, 8, 0, 16}));
  const Layout collect = kAllGather.layout(103, 2, 3, 2);
  EXPECT_EQ((std::vector<std::size_t>{collect.param, collect.send, collect.recv, collect.in_place_send,
                                      collect.in_place_recv}),
            (std::vector<std::size_t>{16, 16, 48, 32, 0}));
  EXPECT_EQ(kAllGather.layout(40, 4, 3, 0).param, 0U);
  const Layout transpose = kAllToAll.layout(103, 4, 3, 2);
  EXPECT_EQ((std::vector<std::size_t>{transpose.param, transpose.send, transpose.recv}),
            (std::vector<std::size_t>{8, 24, 24}));
  const Layout gather = kGather.layout(103, 4, 3, 2);
  EXPECT_EQ((std::vector<std::size_t>{gather.param, gather.send, gather.recv, gather.in_place_send}),
            (std::vector<std::size_t>{8, 8, 24, 16}));
  const Layout deal = kScatter.layout(103, 4, 3, 2);
  EXPECT_EQ((std::vector<std::size_t>{deal.param, deal.send, deal.recv, deal.in_place_recv}),
            (std::vector<std::size_t>{8, 24, 8, 16}));
  for (const Collective& whole : {kReduce, kSendRecv}) {
    const Layout layout = whole.layout(103, 1, 3, 2);
    EXPECT_EQ((std::vector<std::size_t>{layout.param, layout.send, layout.recv}),
              (std::vector<std::size_t>{103, 103, 103}));
  }
}

TEST(Statistics, ByHand) {
  std::vector<double> times(100);
  std::iota(times.begin(), times.end(), 1.0);
  std::reverse(times.begin(), times.end());
  const IterationStats stats = statsOf(times);
  EXPECT_EQ((std::vector<double>{stats.min_us, stats.max_us, stats.mean_us, stats.p50_us, stats.p95_us,
                                 stats.p99_us}),
            (std::vector<double>{1, 100, 50.5, 50, 95, 99}));
  EXPECT_NEAR(stats.stdev_us, 28.866, 0.001);
  EXPECT_NEAR(stats.cv_percent, 57.16, 0.01);
  EXPECT_EQ(statsOf({7}).p99_us, 7);
  EXPECT_EQ(overRanks(Average::kRank0, {4, 1, 7}), 4);
  EXPECT_EQ(overRanks(Average::kMean, {4, 1, 7}), 4);
  EXPECT_EQ(overRanks(Average::kMin, {4, 1, 7}), 1);
  EXPECT_EQ(overRanks(Average::kMax, {4, 1, 7}), 7);
}

}  // namespace
}  // namespace tutti::perf
