// 16- and 8-bit floats against the host side of CUDA's own headers, every code; arithmetic against exact
// values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/cuda_emulator/probe.h"

namespace tutti::emulator {
namespace {

class PtxHalves : public ProbeTest {};

INSTANTIATE_TEST_SUITE_P(Compute, PtxHalves, ::testing::Values(80, 90), ::testing::PrintToStringParamName());

constexpr std::size_t kCodes = 65536;

std::uint16_t code(std::size_t i) { return static_cast<std::uint16_t>(i); }

bool sameFloat(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// Every half, every bfloat16, and their neighbours among the floats: all ties and all edges.
std::vector<float> floatsAroundCodes() {
  std::vector<float> all;
  for (std::size_t i = 0; i < kCodes; ++i) {
    for (const float x :
         {__half2float(__ushort_as_half(code(i))), __bfloat162float(__ushort_as_bfloat16(code(i)))}) {
      const float next = std::nextafter(x, std::numeric_limits<float>::infinity());
      const float tie = x + (std::nextafter(std::fabs(x), 2 * std::fabs(x) + 1) - std::fabs(x)) * 4096;
      for (const float y : {x, next, tie}) all.push_back(y);
    }
  }
  return all;
}

TEST_P(PtxHalves, everyCodeBecomesTheFloatItIs) {
  std::vector<float> f16(kCodes);
  std::vector<float> bf16(kCodes);
  runKernel(*loadProbe("halves", GetParam()), "widenHalf", shape(256, 256), f16.data(), bf16.data());
  for (std::size_t i = 0; i < kCodes; ++i) {
    ASSERT_TRUE(sameFloat(f16[i], __half2float(__ushort_as_half(code(i))))) << std::hex << i;
    ASSERT_TRUE(sameFloat(bf16[i], __bfloat162float(__ushort_as_bfloat16(code(i))))) << std::hex << i;
  }
}

std::uint16_t expectedNarrow(std::size_t which, float x) {
  switch (which) {
    case 0:
      return __half_as_ushort(__float2half_rn(x));
    case 1:
      return __half_as_ushort(__float2half_rz(x));
    case 2:
      return __half_as_ushort(__float2half_rd(x));
    case 3:
      return __half_as_ushort(__float2half_ru(x));
    case 4:
      return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    case 5:
      return __bfloat16_as_ushort(__float2bfloat16_rz(x));
    case 6:
      return __bfloat16_as_ushort(__float2bfloat16_rd(x));
    case 7:
      return __bfloat16_as_ushort(__float2bfloat16_ru(x));
    case 8:
      return __half_as_ushort(__double2half(static_cast<double>(x) * 1.000000001));
    default:
      return __bfloat16_as_ushort(__double2bfloat16(static_cast<double>(x) * 1.000000001));
  }
}

TEST_P(PtxHalves, floatsRoundToHalvesAsTheHeadersDo) {
  const std::vector<float> in = floatsAroundCodes();
  std::vector<std::uint16_t> out(in.size() * 10);
  runKernel(*loadProbe("halves", GetParam()), "narrowFloat",
            shape(static_cast<std::uint32_t>(in.size() / 256), 256), out.data(), in.data(),
            static_cast<int>(in.size()));
  for (std::size_t which = 0; which < 10; ++which) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(out[which * in.size() + i], expectedNarrow(which, in[i]))
          << "conversion " << which << " of " << in[i];
    }
  }
}

std::uint8_t expectedByte(std::size_t which, float x) {
  const __half half = __float2half_rn(x);
  switch (which) {
    case 0:
    case 4:
      return __nv_cvt_float_to_fp8(which == 0 ? x : -x, __NV_SATFINITE, __NV_E4M3);
    case 1:
      return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
    case 2:
      return __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E4M3);
    case 3:
      return __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E5M2);
    default:
      return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  }
}

TEST_P(PtxHalves, floatsRoundToBytesAsTheHeadersDo) {
  const std::vector<float> in = floatsAroundCodes();
  std::vector<std::uint8_t> out(in.size() * 6);
  runKernel(*loadProbe("halves", GetParam()), "narrowToBytes",
            shape(static_cast<std::uint32_t>(in.size() / 256), 256), out.data(), in.data(),
            static_cast<int>(in.size()));
  for (std::size_t which = 0; which < 6; ++which) {
    // The pair holds x in its low byte and -x in its high one.
    const std::size_t oracle = which == 4 ? 0 : which;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::uint8_t expected = which == 5 ? expectedByte(4, in[i]) : expectedByte(oracle, in[i]);
      const std::uint8_t found = out[which * in.size() + i];
      if (std::isnan(in[i])) {
        ASSERT_EQ(found & 0x7f, 0x7f) << which;
        continue;
      }
      ASSERT_EQ(found, expected) << "conversion " << which << " of " << in[i];
    }
  }
}

TEST_P(PtxHalves, everyByteBecomesTheHalfItIs) {
  std::vector<std::uint16_t> e4m3(256);
  std::vector<std::uint16_t> e5m2(256);
  runKernel(*loadProbe("halves", GetParam()), "widenBytes", shape(1, 256), e4m3.data(), e5m2.data());
  for (std::size_t i = 0; i < 256; ++i) {
    const auto byte = static_cast<__nv_fp8_storage_t>(i);
    const std::uint16_t four = __half_raw(__nv_cvt_fp8_to_halfraw(byte, __NV_E4M3)).x;
    const std::uint16_t five = __half_raw(__nv_cvt_fp8_to_halfraw(byte, __NV_E5M2)).x;
    ASSERT_TRUE(e4m3[i] == four || ((four & 0x7fff) > 0x7c00 && (e4m3[i] & 0x7fff) > 0x7c00)) << i;
    ASSERT_TRUE(e5m2[i] == five || ((five & 0x7fff) > 0x7c00 && (e5m2[i] & 0x7fff) > 0x7c00)) << i;
  }
}

/// One of the two 16-bit formats, by its exact values.
struct HalfFormat {
  const char* kernel;
  std::uint16_t infinity;
  double (*value)(std::uint16_t);
};

const HalfFormat kHalf{"operateHalf", 0x7c00,
                       [](std::uint16_t bits) { return double{__half2float(__ushort_as_half(bits))}; }};
const HalfFormat kBfloat16{"operateBfloat16", 0x7f80, [](std::uint16_t bits) {
                             return double{__bfloat162float(__ushort_as_bfloat16(bits))};
                           }};

__extension__ using Exact = __float128;

/// The code nearest to a finite value, ties to even, found by bisection: magnitudes are ordered as their
/// codes are.
std::uint16_t nearest(const HalfFormat& format, Exact x) {
  const Exact magnitude = x < 0 ? -x : x;
  std::uint16_t low = 0;
  std::uint16_t high = format.infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (static_cast<Exact>(format.value(middle)) <= magnitude ? low : high) = middle;
  }
  const Exact below = format.value(low);
  // What would come after the largest finite number, were exponents endless, decides where infinity begins.
  const Exact above =
      high == format.infinity
          ? below + (below - static_cast<Exact>(format.value(static_cast<std::uint16_t>(low - 1))))
          : static_cast<Exact>(format.value(high));
  const Exact to_low = magnitude - below;
  const Exact to_high = above - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && (low & 1) != 0);
  return up ? high : low;
}

/// The sum as far as rounding it to 16 bits can tell: a summand that is smaller than the other by more than
/// the 113 bits of Exact counts as just small.
Exact sumOf(Exact a, Exact b) {
  constexpr Exact kSmall = 0x1p-60;
  const auto magnitude = [](Exact x) { return x < 0 ? -x : x; };
  const auto smallBeside = [&](Exact x, Exact other) {
    if (x == 0 || magnitude(x) > magnitude(other) * kSmall) return x;
    return (x < 0 ? -1 : 1) * magnitude(other) * kSmall;
  };
  return smallBeside(a, b) + smallBeside(b, a);
}

/// 0x7fff where the result is NaN; the sign of a zero is that of `plain`.
std::uint16_t expectedOperation(const HalfFormat& format, std::size_t which, std::uint16_t a, std::uint16_t b,
                                std::uint16_t c) {
  const double x = format.value(a);
  const double y = format.value(b);
  const double z = format.value(c);
  const bool first_less = x < y || (x == y && std::signbit(x));
  const bool any_nan = std::isnan(x) || std::isnan(y);
  switch (which) {
    case 4:
    case 5:
    case 6:
    case 7:
      if ((which >= 6 && any_nan) || (std::isnan(x) && std::isnan(y))) return 0x7fff;
      if (any_nan) return std::isnan(x) ? b : a;
      return first_less == (which % 2 == 0) ? a : b;
    case 8:
      return a ^ 0x8000;
    case 9:
      return a & 0x7fff;
    default:
      break;
  }
  const double plain = which == 0 ? x + y : which == 1 ? x - y : which == 2 ? x * y : std::fma(x, y, z);
  if (std::isnan(plain)) return 0x7fff;
  const auto sign = static_cast<std::uint16_t>(std::signbit(plain) ? 0x8000 : 0);
  if (std::isinf(plain)) return format.infinity | sign;
  const Exact ex = x, ey = y, ez = z;
  const Exact exact = which == 0 ? ex + ey : which == 1 ? ex - ey : which == 2 ? ex * ey : sumOf(ex * ey, ez);
  return nearest(format, exact) | sign;
}

struct Operands {
  std::vector<std::uint16_t> a, b, c;
};

/// Random codes, of which many have nearby exponents and some are special.
Operands randomOperands(const HalfFormat& format, std::size_t count) {
  std::mt19937 random(3);
  const std::uint16_t special[] = {
      0,      0x8000, 1, 0x8001, format.infinity, 0x7fff, static_cast<std::uint16_t>(format.infinity - 1),
      0x3c00, 0x3f80};
  const auto draw = [&] {
    const auto bits = static_cast<std::uint16_t>(random());
    if (random() % 8 == 0) return special[random() % std::size(special)];
    return random() % 2 == 0 ? bits
                             : static_cast<std::uint16_t>((bits & 0x87ff) | (format.infinity / 2 & 0x7800));
  };
  Operands operands;
  for (std::size_t i = 0; i < count; ++i) {
    operands.a.push_back(draw());
    operands.b.push_back(draw());
    operands.c.push_back(draw());
  }
  return operands;
}

void compareOperations(const HalfFormat& format, int architecture) {
  constexpr std::size_t kCount = 60000;
  constexpr std::size_t kOperations = 10;
  const Operands in = randomOperands(format, kCount);
  std::vector<std::uint16_t> single(kCount * kOperations);
  std::vector<std::uint16_t> paired(kCount * kOperations);
  const auto module = loadProbe("halves", architecture);
  runKernel(*module, format.kernel, shape(kCount / 200, 200), single.data(), in.a.data(), in.b.data(),
            in.c.data(), static_cast<int>(kCount));
  runKernel(*module, std::string(format.kernel) + "Pairs", shape(kCount / 400, 200), paired.data(),
            in.a.data(), in.b.data(), in.c.data(), static_cast<int>(kCount / 2));
  const auto is_nan = [&](std::uint16_t bits) { return (bits & 0x7fff) > format.infinity; };
  for (std::size_t i = 0; i < kCount * kOperations; ++i) {
    const std::size_t which = i / kCount;
    const std::size_t at = i % kCount;
    const std::uint16_t expected = expectedOperation(format, which, in.a[at], in.b[at], in.c[at]);
    for (const std::uint16_t found : {single[i], paired[i]}) {
      ASSERT_TRUE(found == expected || (is_nan(found) && is_nan(expected)))
          << format.kernel << " operation " << which << std::hex << " of " << in.a[at] << ' ' << in.b[at]
          << ' ' << in.c[at] << ": " << found << ", expected " << expected;
    }
  }
}

TEST_P(PtxHalves, halfArithmeticRoundsOnce) { compareOperations(kHalf, GetParam()); }

TEST_P(PtxHalves, bfloat16ArithmeticRoundsOnce) { compareOperations(kBfloat16, GetParam()); }

}  // namespace
}  // namespace tutti::emulator
