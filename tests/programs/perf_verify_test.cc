// The oracle of the *_perf programs against brute force, and its own narrow types against hand-made figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "bench/minifloat.h"
#include "bench/verify.h"
#include "tests/programs/perf_oracle.h"

namespace tutti::perf {
namespace {

constexpr std::uint64_t kRepetition = 5;
const std::vector<ncclRedOp_t> kOps{ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg, kMulSum};
const std::vector<ncclDataType_t> kFloatTypes{ncclFloat16,  ncclFloat32,    ncclFloat64,
                                              ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};

std::vector<ncclDataType_t> allTypes() {
  std::vector<ncclDataType_t> types;
  types.reserve(ncclNumTypes);
  for (int type = 0; type < ncclNumTypes; ++type) types.push_back(static_cast<ncclDataType_t>(type));
  return types;
}

// ---- Narrow types -----------------------------------------------------------------------------------------

TEST(Minifloat, HandMadeFigures) {
  EXPECT_EQ(encode(kHalfFormat, 1.0), 0x3c00U);
  EXPECT_EQ(encode(kHalfFormat, -65504.0), 0xfbffU);
  EXPECT_EQ(encode(kHalfFormat, 65519.0), 0x7bffU);
  EXPECT_EQ(encode(kHalfFormat, 65520.0), 0x7c00U);  // halfway to the next: infinity
  EXPECT_EQ(encode(kBfloat16Format, 1.0), 0x3f80U);
  EXPECT_EQ(encode(kBfloat16Format, -2.0), 0xc000U);
  EXPECT_EQ(encode(kBfloat16Format, 257.0), 0x4380U);  // between 256 and 258: to the even 256
  EXPECT_EQ(encode(kBfloat16Format, 259.0), 0x4382U);  // between 258 and 260: to the even 260
  EXPECT_EQ(encode(kBfloat16Format, 257.5), 0x4381U);
  EXPECT_EQ(encode(kBfloat16Format, 3.4e38), 0x7f80U);  // above the largest: infinity
  EXPECT_EQ(encode(kFloat8E4m3Format, 448.0), 0x7eU);   // the largest
  EXPECT_EQ(encode(kFloat8E4m3Format, -1e9), 0xfeU);
  EXPECT_EQ(encode(kFloat8E4m3Format, 0.001953125), 0x01U);   // 2^-9, the smallest
  EXPECT_EQ(encode(kFloat8E4m3Format, 0.0009765625), 0x00U);  // half of it: to even
  EXPECT_EQ(encode(kFloat8E4m3Format, 0.00097656251), 0x01U);
  EXPECT_EQ(encode(kFloat8E4m3Format, -0.0004), 0x80U);
  EXPECT_EQ(encode(kFloat8E5m2Format, 57344.0), 0x7bU);  // the largest
  EXPECT_EQ(encode(kFloat8E5m2Format, 1e9), 0x7bU);
  EXPECT_EQ(encode(kFloat8E5m2Format, 1.125), 0x3cU);  // between 1 and 1.25: to the even 1
  EXPECT_TRUE(std::isnan(decode(kFloat8E4m3Format, 0x7f)));
  EXPECT_EQ(decode(kFloat8E4m3Format, 0x78), 256.0);  // no infinity: its place holds numbers
  EXPECT_EQ(decode(kFloat8E5m2Format, 0xfc), -std::numeric_limits<double>::infinity());
}

TEST(Minifloat, EveryPatternReturns) {
  for (const FloatFormat& format : {kHalfFormat, kBfloat16Format, kFloat8E4m3Format, kFloat8E5m2Format}) {
    double last = 0;
    for (std::uint32_t bits = 0; bits < 2 * format.signBit(); ++bits) {
      const double value = decode(format, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(format, encode(format, value))));
      } else if (std::isfinite(value)) {
        ASSERT_EQ(encode(format, value), bits);
        const bool first = (bits & (format.signBit() - 1)) == 0;
        ASSERT_TRUE(first || std::abs(value) > last) << "numbers grow with their bits, at " << bits;
        last = std::abs(value);
      }
    }
  }
}

TEST(Minifloat, Bfloat16IsTheUpperHalfOfFloat) {
  for (std::uint32_t bits = 0; bits <= kBfloat16Format.largest(); ++bits) {
    ASSERT_EQ(decode(kBfloat16Format, bits), std::bit_cast<float>(bits << 16));
  }
}

#ifdef __FLT16_MAX__
TEST(Minifloat, HalfIsTheCompilers) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto theirs = static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
    const double ours = decode(kHalfFormat, bits);
    ASSERT_TRUE(theirs == ours || (std::isnan(theirs) && std::isnan(ours))) << bits;
    if (!std::isfinite(ours)) continue;
    for (const double value : {ours * 1.0001, ours * 1.00049, ours + 0x1p-25}) {
      const auto rounded = static_cast<_Float16>(value);
      ASSERT_EQ(encode(kHalfFormat, value), std::bit_cast<std::uint16_t>(rounded)) << value;
    }
  }
}
#endif

// ---- Inputs -----------------------------------------------------------------------------------------------

/// The reduction in the arithmetic of the type, rounded at every step.
double reducedInType(const Problem& problem, const std::vector<double>& values) {
  return reduceFloats(problem, values, Rounding::kEveryStep);
}

void expectExactInAnyOrder(const Problem& problem) {
  constexpr std::size_t kCount = 300;
  const auto inputs = inputsOf(problem, 0, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<double> values;
    values.reserve(inputs.size());
    for (const auto& input : inputs) values.push_back(load(problem.type, input.data(), i));
    const bool product = problem.reduction == ncclProd;
    const double exact = product ? std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<>())
                                 : std::accumulate(values.begin(), values.end(), 0.0);
    ASSERT_EQ(reducedInType(problem, values), exact) << "element " << i << ", in the order of ranks";
    std::reverse(values.begin(), values.end());
    ASSERT_EQ(reducedInType(problem, values), exact) << "element " << i << ", from the last rank";
    std::sort(values.begin(), values.end());
    ASSERT_EQ(reducedInType(problem, values), exact) << "element " << i << ", all negative values first";
    std::sort(values.begin(), values.end(), [](double a, double b) { return std::abs(a) > std::abs(b); });
    ASSERT_EQ(reducedInType(problem, values), exact) << "element " << i << ", the largest first";
  }
}

TEST(Verify, FloatingSumsAndProductsAreExactInAnyOrder) {
  for (const ncclDataType_t type : kFloatTypes) {
    for (const ncclRedOp_t op : {ncclSum, ncclProd}) {
      for (const int nranks : {1, 2, 3, 5, 8, 64, 200, 300}) {
        SCOPED_TRACE(testing::Message() << "type " << type << ", op " << op << ", " << nranks << " ranks");
        expectExactInAnyOrder({type, op, nranks, kRepetition});
      }
    }
  }
}

TEST(Verify, EveryRankContributesSomewhere) {
  for (const ncclDataType_t type : allTypes()) {
    for (const ncclRedOp_t op : kOps) {
      const Problem problem{type, op, 70, kRepetition};
      for (const auto& input : inputsOf(problem, 0, 512)) {
        const bool same = std::equal(input.begin() + static_cast<std::ptrdiff_t>(elementBytes(type)),
                                     input.end(), input.begin());
        EXPECT_FALSE(same) << "type " << type << ", op " << op << ": one value only";
      }
    }
  }
}

// ---- The check --------------------------------------------------------------------------------------------

void expectOnlyTheRightResultPasses(const Problem& problem) {
  constexpr std::size_t kFirst = 12345;
  constexpr std::size_t kCount = 3000;
  std::vector<std::byte> got = bruteForce(problem, kFirst, kCount);
  const Mismatches clean = checkReduction(problem, kFirst, kCount, got.data());
  EXPECT_EQ(clean.wrong, 0U) << clean.first << ": " << clean.expected << " " << clean.got;
  const auto late = bruteForce(problem, kFirst, kCount, Rounding::kAtTheEnd);
  const Mismatches once = checkReduction(problem, kFirst, kCount, late.data());
  EXPECT_EQ(once.wrong, 0U) << "rounded once; " << once.first << ": " << once.expected << " " << once.got;

  // Where many ranks share few values, neighbours often agree.
  const std::size_t many = problem.nranks <= 4 ? kCount / 2 : kCount / 4;
  EXPECT_GT(checkReduction(problem, kFirst + 1, kCount, got.data()).wrong, many) << "shifted by one";
  Problem other = problem;
  other.repetition = kRepetition + 1;
  EXPECT_GT(checkReduction(other, kFirst, kCount, got.data()).wrong, many) << "stale data";
}

/// The reduction of all inputs but one rank's.
void expectMissingRankIsSeen(const Problem& problem) {
  constexpr std::size_t kCount = 2000;
  auto inputs = inputsOf(problem, 0, kCount);
  const int left_out = problem.nranks - 1;
  const std::size_t size = elementBytes(problem.type);
  std::vector<std::byte> got(kCount * size);
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<double> numbers;
    std::vector<std::uint64_t> integers;
    for (int rank = 0; rank < left_out; ++rank) {
      const std::byte* input = inputs[static_cast<std::size_t>(rank)].data();
      if (isInteger(problem.type)) {
        integers.push_back(loadBits(problem.type, input, i));
      } else {
        numbers.push_back(load(problem.type, input, i));
      }
    }
    if (isInteger(problem.type)) {
      storeBits(problem.type, reduceIntegers(problem, integers), got.data(), i);
    } else {
      store(problem.type, reduceFloats(problem, numbers, Rounding::kEveryStep), got.data(), i);
    }
  }
  const auto nranks = static_cast<std::size_t>(problem.nranks);
  const std::size_t seen = picks(*problem.reduction) ? kCount / (4 * nranks) : kCount / 10;
  EXPECT_GT(checkReduction(problem, 0, kCount, got.data()).wrong, seen);
}

TEST(Verify, AgreesWithBruteForceAndOnlyWithIt) {
  for (const ncclDataType_t type : allTypes()) {
    for (const ncclRedOp_t op : kOps) {
      for (const int nranks : {1, 2, 3, 4, 7}) {
        SCOPED_TRACE(testing::Message() << "type " << type << " op " << op << " ranks " << nranks);
        const Problem problem{type, op, nranks, kRepetition};
        expectOnlyTheRightResultPasses(problem);
        if (nranks > 1) expectMissingRankIsSeen(problem);
      }
    }
  }
}

void expectBruteForcePasses(const Problem& problem) {
  constexpr std::size_t kCount = 200;
  for (const Rounding rounding : {Rounding::kEveryStep, Rounding::kAtTheEnd}) {
    const auto got = bruteForce(problem, 0, kCount, rounding);
    const Mismatches found = checkReduction(problem, 0, kCount, got.data());
    EXPECT_EQ(found.wrong, 0U) << found.expected << " " << found.got;
  }
}

TEST(Verify, AgreesWithBruteForceOverManyRanks) {
  for (const ncclDataType_t type : allTypes()) {
    for (const ncclRedOp_t op : kOps) {
      for (const int nranks : {9, 16, 17, 100, 256, 300, 1024}) {
        SCOPED_TRACE(testing::Message() << "type " << type << " op " << op << " ranks " << nranks);
        expectBruteForcePasses({type, op, nranks, kRepetition});
      }
    }
  }
}

constexpr std::size_t kPlantedCount = 3000;
constexpr std::array<std::size_t, 4> kPlantedAt{0, 1023, 1024, 2999};

/// A right result but for the lowest bit of one element: no neighbour of the right value may pass.
void expectPlantedElementIsFound(const Problem& problem, std::size_t index) {
  std::vector<std::byte> got = bruteForce(problem, 0, kPlantedCount);
  storeBits(problem.type, loadBits(problem.type, got.data(), index) ^ 1U, got.data(), index);
  const Mismatches found = checkReduction(problem, 0, kPlantedCount, got.data());
  EXPECT_EQ(found.wrong, 1U);
  EXPECT_EQ(found.first, index);
  // Numbers are told with ten digits, which is not enough for double.
  EXPECT_TRUE(found.expected != found.got || problem.type == ncclFloat64);
}

TEST(Verify, FindsPlantedElements) {
  for (const ncclDataType_t type : allTypes()) {
    for (const ncclRedOp_t op : kOps) {
      SCOPED_TRACE(testing::Message() << "type " << type << " op " << op);
      for (const std::size_t index : kPlantedAt) {
        expectPlantedElementIsFound({type, op, 4, kRepetition}, index);
      }
    }
  }
}

TEST(Verify, FindsPlantedBitsInMovedData) {
  constexpr std::size_t kFirst = 77;
  constexpr std::size_t kMost = kPlantedCount * 95 / 100;
  for (const ncclDataType_t type : allTypes()) {
    const std::size_t size = elementBytes(type);
    for (const std::size_t index : kPlantedAt) {
      const Problem moved{type, std::nullopt, 4, kRepetition};
      std::vector<std::byte> got(kPlantedCount * size);
      fillInput(moved, 2, kFirst, kPlantedCount, got.data());
      EXPECT_EQ(checkCopy(moved, 2, kFirst, kPlantedCount, got.data()).wrong, 0U);
      EXPECT_GT(checkCopy(moved, 1, kFirst, kPlantedCount, got.data()).wrong, kMost);
      EXPECT_GT(checkCopy(moved, 2, kFirst + 1, kPlantedCount, got.data()).wrong, kMost);
      got[index * size] ^= std::byte{1};
      got[2999 * size + size - 1] ^= std::byte{0x80};
      const Mismatches found = checkCopy(moved, 2, kFirst, kPlantedCount, got.data());
      EXPECT_EQ(found.wrong, index == 2999 ? 1U : 2U);
      EXPECT_EQ(found.first, index);
    }
  }
}

TEST(Verify, UntouchedMemoryIsTold) {
  std::vector<std::byte> memory(5000, std::byte{7});
  EXPECT_EQ(checkUntouched(memory.data(), memory.size(), std::byte{7}).wrong, 0U);
  memory[4321] = std::byte{8};
  const Mismatches found = checkUntouched(memory.data(), memory.size(), std::byte{7});
  EXPECT_EQ(found.wrong, 1U);
  EXPECT_EQ(found.first, 4321U);
}

TEST(Verify, NotANumberIsWrong) {
  for (const ncclDataType_t type : kFloatTypes) {
    const Problem problem{type, ncclAvg, 3, kRepetition};
    std::vector<std::byte> got = bruteForce(problem, 0, 10);
    store(type, std::nan(""), got.data(), 7);
    const Mismatches found = checkReduction(problem, 0, 10, got.data());
    EXPECT_EQ(found.wrong, 1U);
    EXPECT_EQ(found.first, 7U);
  }
}

TEST(Verify, ToleranceOnlyWhereAnAverageRounds) {
  EXPECT_EQ(averageTolerance({ncclFloat32, ncclAvg, 4, 0}, 100), 0);
  EXPECT_EQ(averageTolerance({ncclInt32, ncclAvg, 3, 0}, 100), 0);
  EXPECT_EQ(averageTolerance({ncclUint8, ncclAvg, 300, 0}, 100), 0);
  EXPECT_EQ(averageTolerance({ncclFloat8e5m2, ncclAvg, 8, 0}, 8), 0);
  for (const ncclRedOp_t op : kOps) {
    if (op == ncclAvg) continue;
    EXPECT_EQ(averageTolerance({ncclFloat32, op, 3, 0}, 100), 0);
  }
  EXPECT_DOUBLE_EQ(averageTolerance({ncclFloat32, ncclAvg, 3, 0}, 100), 1600.0 / 16777216);
  EXPECT_DOUBLE_EQ(averageTolerance({ncclBfloat16, ncclAvg, 3, 0}, 100), 1600.0 / 16777216);
  EXPECT_DOUBLE_EQ(averageTolerance({ncclFloat64, ncclAvg, 3, 0}, 100), std::ldexp(1600.0, -53));
  // One contributor: half a unit in the last place of 3 bits, and half of the smallest number, 2^-16.
  EXPECT_NEAR(averageTolerance({ncclFloat8e5m2, ncclAvg, 9, 0}, 1), 1.0 / 8 + std::ldexp(1.0, -17), 1e-6);
}

TEST(Verify, GuardsCountDamage) {
  std::vector<std::byte> memory(2 * kGuardBytes + 10);
  std::byte* region = memory.data() + kGuardBytes;
  paintGuards(region, 10);
  std::fill_n(region, 10, std::byte{1});
  EXPECT_EQ(damagedGuards(region, 10), 0U);
  memory.front() ^= std::byte{1};
  region[10] ^= std::byte{1};
  memory.back() ^= std::byte{1};
  EXPECT_EQ(damagedGuards(region, 10), 3U);
}

}  // namespace
}  // namespace tutti::perf
