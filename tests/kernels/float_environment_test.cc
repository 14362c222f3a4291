// Results must not depend on what a caller has done to the floating-point control word.
#include "kernels/host/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <vector>

#include "kernels/host/combine_paths.h"
#include "tests/kernels/combine_oracle.h"

namespace tutti {
namespace {

/// Flush results and take operands for zero (bits 15 and 6 of MXCSR), and round upwards (bits 13 and 14).
constexpr std::uint32_t kHostile = 0x8040 | 0x4000;

/// Denormals, halves of units and the smallest normal numbers: what a hostile environment changes.
std::vector<std::byte> delicateValues(DataType type) {
  std::vector<std::byte> bytes;
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    std::uint64_t bits =
        test::drawBits(type, i % 2 == 0 ? test::Draw::special : test::Draw::ordinary, random);
    if (i % 3 == 0) bits &= ~test::formatOf(type).infinity();  // no exponent: a denormal
    for (std::size_t b = 0; b < sizeOf(type); ++b) bytes.push_back(static_cast<std::byte>(bits >> (8 * b)));
  }
  return bytes;
}

std::vector<std::byte> combined(const CombinePath& path, DataType type, RedOp op) {
  const std::vector<std::byte> a = delicateValues(type);
  std::vector<std::byte> b = a;
  std::reverse(b.begin(), b.end());
  std::vector<std::byte> result(a.size());
  const std::byte* srcs[] = {a.data(), b.data()};
  std::byte* dsts[] = {result.data()};
  path.table->functions[static_cast<int>(type)][static_cast<int>(op)]({.dsts = dsts,
                                                                       .srcs = srcs,
                                                                       .dst_count = 1,
                                                                       .src_count = 2,
                                                                       .n = a.size() / sizeOf(type),
                                                                       .own = 1,
                                                                       .nranks = 3});
  return result;
}

class HostileCaller : public testing::Test {
 protected:
  void SetUp() override {
    if (kDefaultFloatControl == 0) GTEST_SKIP() << "no control word of this CPU is known";
    before_ = floatControl();
  }
  void TearDown() override {
    if (kDefaultFloatControl != 0) setFloatControl(before_);
  }
  std::uint32_t before_ = 0;
};

/// What a hostile caller gets; with the guard or without.
std::vector<std::byte> combinedFor(std::uint32_t control, bool is_guarded, const CombinePath& path,
                                   DataType type, RedOp op) {
  const std::uint32_t before = floatControl();
  setFloatControl(control);
  std::vector<std::byte> result;
  if (is_guarded) {
    const FloatEnvironment environment;
    result = combined(path, type, op);
  } else {
    result = combined(path, type, op);
  }
  setFloatControl(before);
  return result;
}

TEST_F(HostileCaller, GetsTheSameBits) {
  const std::uint32_t hostile = kDefaultFloatControl | kHostile;
  bool hostility_shows = false;
  for (const CombinePath& path : combinePaths()) {
    for (int type = static_cast<int>(DataType::float16); type < kDataTypeCount; ++type) {
      for (int op = 0; op < kRedOpCount; ++op) {
        const auto t = static_cast<DataType>(type);
        const auto o = static_cast<RedOp>(op);
        const auto want = combined(path, t, o);
        EXPECT_EQ(combinedFor(hostile, true, path, t, o), want)
            << path.name << " " << name(t) << " " << name(o);
        hostility_shows = hostility_shows || combinedFor(hostile, false, path, t, o) != want;
      }
    }
  }
  EXPECT_TRUE(hostility_shows) << "this test would pass without the guard";
}

TEST_F(HostileCaller, GetsItsControlWordBack) {
  setFloatControl(kDefaultFloatControl | kHostile);
  {
    const FloatEnvironment environment;
    EXPECT_EQ(floatControl(), kDefaultFloatControl);
    std::feraiseexcept(FE_INEXACT);
  }
  EXPECT_EQ(floatControl(), kDefaultFloatControl | kHostile);
}

}  // namespace
}  // namespace tutti
