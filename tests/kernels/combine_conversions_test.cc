// Reading and rounding of the narrow floats, exhaustively, on every instruction set of this CPU. The oracle
// is tests/harness/number_formats.h.
//
// Rounding is reached by a single own source of 1.0 whose scale is the float to be rounded. Reading is then
// pinned by exact differences of neighbours: reading two values wrongly by any common error would leave the
// differences, but not the values themselves, which the identity pins to half a unit, nor their multiples.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/host/combine_paths.h"
#include "tests/harness/number_formats.h"

namespace tutti {
namespace {

using Codes = std::vector<std::uint16_t>;

class Conversions : public testing::TestWithParam<DataType> {
 protected:
  CombineFn function(const CombinePath& path, RedOp op) const {
    return path.table->functions[static_cast<int>(type_)][static_cast<int>(op)];
  }

  std::vector<std::byte> pack(const Codes& codes) const {
    std::vector<std::byte> bytes(codes.size() * size_);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto low = static_cast<std::uint8_t>(codes[i]);
      std::memcpy(bytes.data() + i * size_, size_ == 1 ? static_cast<const void*>(&low) : &codes[i], size_);
    }
    return bytes;
  }

  Codes unpack(const std::vector<std::byte>& bytes) const {
    Codes codes(bytes.size() / size_);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      std::uint8_t low = 0;
      std::memcpy(size_ == 1 ? static_cast<void*>(&low) : &codes[i], bytes.data() + i * size_, size_);
      if (size_ == 1) codes[i] = low;
    }
    return codes;
  }

  /// One source, multiplied by the scale.
  Codes scaled(const CombinePath& path, const Codes& codes, double factor) const {
    const std::vector<std::byte> in = pack(codes);
    std::vector<std::byte> out(in.size());
    const Scale scale{std::bit_cast<std::uint64_t>(factor)};
    const std::byte* srcs[] = {in.data()};
    std::byte* dsts[] = {out.data()};
    function(path, RedOp::premul_sum)({.dsts = dsts,
                                       .srcs = srcs,
                                       .dst_count = 1,
                                       .src_count = 1,
                                       .n = codes.size(),
                                       .own = 1,
                                       .scales = &scale});
    return unpack(out);
  }

  Codes sums(const CombinePath& path, const Codes& a, const Codes& b) const {
    const std::vector<std::byte> left = pack(a);
    const std::vector<std::byte> right = pack(b);
    std::vector<std::byte> out(left.size());
    const std::byte* srcs[] = {left.data(), right.data()};
    std::byte* dsts[] = {out.data()};
    function(path, RedOp::sum)({.dsts = dsts, .srcs = srcs, .dst_count = 1, .src_count = 2, .n = a.size()});
    return unpack(out);
  }

  /// What a float rounds to, by way of combine: in a whole step of vectors, and in a tail.
  void expectRounding(const CombinePath& path, float value) const {
    const Codes ones(kElements, static_cast<std::uint16_t>(numbers_.nearest(1)));
    const Codes got = scaled(path, ones, double{value});
    const auto want = static_cast<std::uint16_t>(numbers_.nearest(double{value}));
    if (got != Codes(kElements, want)) {
      ADD_FAILURE() << path.name << ": " << value << " (bits " << std::bit_cast<std::uint32_t>(value)
                    << ") gives code " << got[0] << " or " << got.back() << ", expected " << want;
    }
  }

  void expectRoundingAround(const CombinePath& path, double value) const {
    const auto middle = static_cast<float>(value);
    for (const float near : {middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)}) {
      expectRounding(path, near);
      expectRounding(path, -near);
    }
  }

  /// All codes.
  Codes all() const {
    Codes codes(std::size_t{1} << (8 * size_));
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
    return codes;
  }

  static constexpr std::size_t kElements = 65;
  DataType type_ = GetParam();
  std::size_t size_ = sizeOf(type_);
  const test::NarrowNumbers& numbers_ = test::narrowNumbers(type_);
};

TEST_P(Conversions, EveryValueMidpointAndNeighbourRoundsToNearestEven) {
  for (const CombinePath& path : combinePaths()) {
    const std::uint64_t largest = numbers_.format().largestFinite();
    for (std::uint64_t code = 0; code <= largest && !HasFailure(); ++code) {
      const double value = numbers_.value(code);
      // Beyond the largest comes what would be the next number, were there one.
      const double next = code < largest ? numbers_.value(code + 1) : 2 * value - numbers_.value(code - 1);
      expectRoundingAround(path, value);
      expectRoundingAround(path, (value + next) / 2);
      if (code == largest) expectRoundingAround(path, next);
    }
    for (const float special : {INFINITY, -INFINITY, NAN, -NAN, 3.4e38F, 1e-45F, -1e-45F, 0.0F, -0.0F}) {
      expectRounding(path, special);
    }
  }
}

TEST_P(Conversions, RandomFloatsRoundToNearestEven) {
  const std::uint64_t seed = 5 + static_cast<std::uint64_t>(type_);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100'000 && !HasFailure(); ++i) {
    // Any float, and floats within the range of the type.
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x807fffffU) | static_cast<std::uint32_t>(100 + random() % 46) << 23;
    const auto& path = combinePaths()[static_cast<std::size_t>(i / 2) % combinePaths().size()];
    expectRounding(path, std::bit_cast<float>(bits));
  }
}

TEST_P(Conversions, EveryCodeIsReadAsItsValue) {
  const Codes codes = all();
  for (const CombinePath& path : combinePaths()) {
    // Times a power of two, to and from the subnormal numbers; times one.
    for (const double factor : {1.0, 2.0, 0.5, 0x1p6, 0x1p-6, 0x1p12, 0x1p-12, 3.0, -1.0}) {
      const Codes got = scaled(path, codes, factor);
      for (const std::uint16_t code : codes) {
        const auto product = static_cast<float>(numbers_.value(code)) * static_cast<float>(factor);
        ASSERT_EQ(got[code], numbers_.nearest(double{product}))
            << path.name << ": " << code << " * " << factor;
      }
    }
  }
}

TEST_P(Conversions, DifferencesOfNeighboursAreExact) {
  const std::uint64_t sign = numbers_.format().sign();
  Codes upper;
  Codes lower;
  for (std::uint64_t code = 1; code <= numbers_.format().largestFinite(); ++code) {
    upper.push_back(static_cast<std::uint16_t>(code));
    lower.push_back(static_cast<std::uint16_t>((code - 1) | sign));
  }
  for (const CombinePath& path : combinePaths()) {
    const Codes got = sums(path, upper, lower);
    for (std::size_t i = 0; i < upper.size(); ++i) {
      ASSERT_EQ(numbers_.value(got[i]), numbers_.value(upper[i]) + numbers_.value(lower[i]))
          << path.name << ": code " << upper[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Conversions,
                         testing::Values(DataType::float16, DataType::bfloat16, DataType::float8e4m3,
                                         DataType::float8e5m2),
                         [](const auto& type) { return std::string(name(type.param)); });

// The formats themselves, against figures that their specifications publish.
TEST(NumberFormats, PublishedExtremes) {
  const auto largest = [](DataType type) {
    return test::narrowNumbers(type).value(test::formatOf(type).largestFinite());
  };
  const auto smallest = [](DataType type) { return test::narrowNumbers(type).value(1); };
  EXPECT_EQ(largest(DataType::float16), 65504);
  EXPECT_EQ(smallest(DataType::float16), 0x1p-24);
  EXPECT_EQ(largest(DataType::bfloat16), 0x1.fep127);
  EXPECT_EQ(smallest(DataType::bfloat16), 0x1p-133);
  EXPECT_EQ(largest(DataType::float8e4m3), 448);
  EXPECT_EQ(smallest(DataType::float8e4m3), 0x1p-9);
  EXPECT_EQ(largest(DataType::float8e5m2), 57344);
  EXPECT_EQ(smallest(DataType::float8e5m2), 0x1p-16);
}

TEST(NumberFormats, ScalesAreReadByTheSameDefinition) {
  for (const DataType type :
       {DataType::float16, DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2}) {
    const std::uint32_t codes = sizeOf(type) == 1 ? 256 : 65536;
    for (std::uint32_t code = 0; code < codes; ++code) {
      const std::uint8_t bytes[8] = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(code >> 8)};
      const Scale scale = scaleFrom(type, bytes);
      const double want = test::narrowNumbers(type).value(code);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(scale.asDouble()) : scale.asDouble() == want) << code;
      ASSERT_EQ(std::signbit(want), std::signbit(scale.asDouble())) << code;
    }
  }
}

TEST(Scales, IntegersKeepTheirSignAndAveragesAreRoundedOnce) {
  const std::int8_t minus = -3;
  EXPECT_EQ(scaleFrom(DataType::int8, &minus).bits, static_cast<std::uint64_t>(-3));
  EXPECT_EQ(scaleFrom(DataType::uint8, &minus).bits, 253U);
  const float third = 1.0F / 3.0F;
  EXPECT_EQ(scaleFrom(DataType::float32, &third), averageScale(DataType::float32, 3));
  EXPECT_EQ(averageScale(DataType::float16, 3), averageScale(DataType::float32, 3));
  EXPECT_EQ(averageScale(DataType::float64, 3).asDouble(), 1.0 / 3);
  EXPECT_EQ(averageScale(DataType::int32, 3), unitScale(DataType::int32));
}

}  // namespace
}  // namespace tutti
