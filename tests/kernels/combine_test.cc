// The arithmetic of combine, against plain definitions written here.
#include "kernels/host/combine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/harness/oracle.h"

namespace tutti {
namespace {

template <class T>
std::vector<std::byte> bytesOf(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct Options {
  std::uint64_t own = 0;
  int nranks = 1;
  bool last = false;
};

/// Combines vectors of T; the result of one destination.
template <class T>
std::vector<T> combined(DataType type, RedOp op, const std::vector<std::vector<T>>& sources,
                        const Options& options = {}) {
  std::vector<std::vector<std::byte>> raw;
  std::vector<const std::byte*> srcs;
  raw.reserve(sources.size());
  for (const auto& source : sources) srcs.push_back(raw.emplace_back(bytesOf(source)).data());
  std::vector<T> result(sources[0].size());
  auto* dst = reinterpret_cast<std::byte*>(result.data());
  const CombineFn fn = combineFunction(type, op);
  EXPECT_NE(fn, nullptr);
  fn({.dsts = &dst,
      .srcs = srcs.data(),
      .dst_count = 1,
      .src_count = static_cast<std::uint32_t>(srcs.size()),
      .n = result.size(),
      .own = options.own,
      .nranks = options.nranks,
      .last = options.last});
  return result;
}

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Halves = std::vector<std::uint16_t>;  // bfloat16 by bits

TEST(Combine, IntegersWrap) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, RedOp::sum, {Ints{most, -5}, Ints{1, 2}}),
            (Ints{std::numeric_limits<std::int32_t>::min(), -3}));
}

TEST(Combine, IntegerAverageDividesOnceAndTruncates) {
  const Options middle{.own = 3, .nranks = 3};
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, RedOp::avg, {Ints{-5, 5}, Ints{-3, 3}}, middle),
            (Ints{-8, 8}));
  const Options last{.own = 2, .nranks = 3, .last = true};
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, RedOp::avg, {Ints{-5, 5}, Ints{-3, 3}}, last),
            (Ints{-2, 2}));
}

TEST(Combine, FloatAverageScalesOwnContributionsOnly) {
  const float third = 1.0F / 3.0F;
  const Options options{.own = 2, .nranks = 3};
  EXPECT_EQ(combined<float>(DataType::float32, RedOp::avg, {Floats{1}, Floats{6}}, options),
            (Floats{1 + 6 * third}));
}

TEST(Combine, MaxIgnoresOneNaNAndOrdersZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Floats a{nan, 1, -0.0F, 0.0F, -inf, -2};
  const Floats b{2, nan, 0.0F, -0.0F, -5, -3};
  const Floats max = combined<float>(DataType::float32, RedOp::max, {a, b});
  EXPECT_EQ(max, (Floats{2, 1, 0, 0, -5, -2}));
  EXPECT_FALSE(std::signbit(max[2]));
  EXPECT_FALSE(std::signbit(max[3]));
}

TEST(Combine, ComputedNaNIsCanonical) {
  const float odd_nan = std::bit_cast<float>(0xffc12345U);
  const Floats sum = combined<float>(DataType::float32, RedOp::sum, {Floats{odd_nan}, Floats{1}});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum[0]), 0x7fffffffU);
  const Floats max = combined<float>(DataType::float32, RedOp::max, {Floats{odd_nan}, Floats{odd_nan}});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(max[0]), 0x7fffffffU);
  const Halves half =
      combined<std::uint16_t>(DataType::bfloat16, RedOp::sum, {Halves{0xffc1}, Halves{0x3f80}});
  EXPECT_EQ(half[0], 0x7fffU);
}

TEST(Combine, CopyKeepsEveryBit) {
  const Floats odd{std::bit_cast<float>(0xffc12345U), -0.0F};
  const auto raw = bytesOf(odd);
  std::vector<std::byte> first(raw.size());
  std::vector<std::byte> second(raw.size());
  std::byte* dsts[] = {first.data(), second.data()};
  const std::byte* srcs[] = {raw.data()};
  const CombineArgs args{.dsts = dsts, .srcs = srcs, .dst_count = 2, .src_count = 1, .n = 2};
  EXPECT_TRUE(isCopy(args, RedOp::sum));
  copyCombine(args, sizeof(float));
  EXPECT_EQ(first, raw);
  EXPECT_EQ(second, raw);
}

TEST(Combine, BFloat16RoundsToNearestEvenOverAllPairsOfOnes) {
  // Exhaustive over one operand against an oracle in double: candidates around the exact sum, nearest, ties
  // to even.
  const auto valueOf = [](std::uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
  };
  Halves all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const std::uint16_t other : Halves{0x3f80, 0x3b81, 0xbf80, 0x0001, 0x4380}) {
    const Halves sums =
        combined<std::uint16_t>(DataType::bfloat16, RedOp::sum, {all, Halves(all.size(), other)});
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double a = valueOf(all[i]);
      if (std::isnan(a) || std::isinf(a)) continue;
      // combine accumulates in float and rounds once more: so does the oracle, by the hardware's double to
      // float.
      const auto exact = static_cast<double>(static_cast<float>(a + valueOf(other)));
      const double got = valueOf(sums[i]);
      if (std::isinf(got)) {
        EXPECT_GT(std::abs(exact), 3.3895e38);  // the largest bfloat16 is 3.3895e38
        continue;
      }
      const double below = valueOf(static_cast<std::uint16_t>(sums[i] - 1));
      const double above = valueOf(static_cast<std::uint16_t>(sums[i] + 1));
      const double error = std::abs(got - exact);
      for (const double rival : {below, above}) {
        if (std::isnan(rival) || std::isinf(rival)) continue;
        ASSERT_LE(error, std::abs(rival - exact)) << i << " + " << other;
        const bool is_tie = error == std::abs(rival - exact) && error > 0;
        ASSERT_TRUE(!is_tie || sums[i] % 2 == 0) << i << " + " << other;
      }
    }
  }
}

TEST(Combine, AnyLengthAlignmentAndNumberOfOperands) {
  std::mt19937_64 random(7);
  constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::int32, DataType::bfloat16};
  constexpr RedOp kOps[] = {RedOp::sum, RedOp::avg, RedOp::max};
  for (int round = 0; round < 3000; ++round) {
    const DataType type = kTypes[random() % 4];
    const RedOp op = kOps[random() % 3];
    const std::size_t size = sizeOf(type);
    const auto n = static_cast<std::size_t>(random() % 70);
    const auto srcs = static_cast<int>(1 + random() % 5);
    const auto dsts = static_cast<std::size_t>(1 + random() % 3);
    const std::uint64_t seed = random();
    std::vector<std::vector<std::byte>> memory;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    memory.reserve(static_cast<std::size_t>(srcs) + dsts);
    for (int s = 0; s < srcs; ++s) {
      const std::size_t shift = random() % 16;
      auto& buffer = memory.emplace_back(n * size + 16);
      for (std::size_t i = 0; i < n; ++i) {
        test::encode(type, buffer.data() + shift + i * size, test::inputValue(seed, s, i));
      }
      from.push_back(buffer.data() + shift);
    }
    for (std::size_t d = 0; d < dsts; ++d) {
      to.push_back(memory.emplace_back(n * size + 16).data() + random() % 16);
    }
    if (random() % 2 == 0) to[0] = const_cast<std::byte*>(from[0]);  // in place
    // All sources own and the call last: a whole reduction in one call.
    combineFunction(type, op)({.dsts = to.data(),
                               .srcs = from.data(),
                               .dst_count = static_cast<std::uint32_t>(dsts),
                               .src_count = static_cast<std::uint32_t>(srcs),
                               .n = n,
                               .own = ~std::uint64_t{0},
                               .nranks = srcs,
                               .last = true});
    for (const std::byte* result : to) {
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(test::decode(type, result + i * size), test::reducedValue(seed, srcs, type, op, i),
                    test::tolerance(type, op, srcs))
            << "round " << round << " " << name(type) << " " << name(op) << " element " << i;
      }
    }
  }
}

TEST(Combine, EveryTypeHasEveryOperation) {
  for (int type = 0; type < kDataTypeCount; ++type) {
    for (int op = 0; op < kAllRedOpCount; ++op) {
      EXPECT_NE(combineFunction(static_cast<DataType>(type), static_cast<RedOp>(op)), nullptr);
    }
  }
}

}  // namespace
}  // namespace tutti
