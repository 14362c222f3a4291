// The rules of combine, one example each. combine_definition_test.cc has the proofs.
#include "kernels/host/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

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
  const Scale* scales = nullptr;
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
  srcs.reserve(sources.size());
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
      .scales = options.scales,
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
  const auto odd_nan = std::bit_cast<float>(0xffc12345U);
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

TEST(Combine, OneSourceIsCopiedUnlessScaledOrDivided) {
  const CombineArgs one{.src_count = 1, .own = 1};
  const CombineArgs two{.src_count = 2, .own = 1};
  const CombineArgs last{.src_count = 1, .last = true};
  const CombineArgs foreign{.src_count = 1, .own = 2};
  EXPECT_TRUE(isCopy(one, RedOp::sum));
  EXPECT_TRUE(isCopy(last, RedOp::max));
  EXPECT_TRUE(isCopy(foreign, RedOp::premul_sum));
  EXPECT_FALSE(isCopy(two, RedOp::sum));
  EXPECT_FALSE(isCopy(one, RedOp::premul_sum));
  EXPECT_FALSE(isCopy(one, RedOp::avg));
  EXPECT_FALSE(isCopy(last, RedOp::avg));
}

TEST(Combine, CopyStreamsToAnyAddress) {
  for (std::size_t shift = 0; shift < 64; ++shift) {
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 1000U}) {
      std::vector<std::byte> from(bytes + 64);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
      std::vector<std::byte> to(bytes + 128);
      std::byte* dsts[] = {to.data() + shift};
      const std::byte* srcs[] = {from.data() + 63 - shift};
      copyCombine({.dsts = dsts, .srcs = srcs, .dst_count = 1, .src_count = 1, .n = bytes, .stream = 1}, 1);
      std::vector<std::byte> want(to.size());
      std::copy_n(srcs[0], bytes, want.begin() + static_cast<std::ptrdiff_t>(shift));
      ASSERT_EQ(to, want) << "shift " << shift << ", " << bytes << " bytes";
    }
  }
}

TEST(Combine, PreMulSumScalesByTheScalarOfEachSource) {
  const float half = 0.5F;
  const float three = 3;
  const Scale scales[] = {scaleFrom(DataType::float32, &half), scaleFrom(DataType::float32, &three)};
  Options options{.own = 3, .scales = scales};
  EXPECT_EQ(combined<float>(DataType::float32, RedOp::premul_sum, {Floats{2}, Floats{5}}, options),
            (Floats{16}));
  options.own = 1;  // the second is a partial sum, scaled already
  EXPECT_EQ(combined<float>(DataType::float32, RedOp::premul_sum, {Floats{2}, Floats{5}}, options),
            (Floats{6}));
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
