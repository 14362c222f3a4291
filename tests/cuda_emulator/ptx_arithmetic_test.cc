// Integer and float arithmetic as nvcc compiled it, against the host's own: every bit, NaN payloads aside.
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "tests/cuda_emulator/probe.h"
#include "tests/cuda_emulator/probes/operations.h"

namespace tutti::emulator {
namespace {

using probe::s64;
using probe::u64;

class PtxArithmetic : public ProbeTest {};

INSTANTIATE_TEST_SUITE_P(Compute, PtxArithmetic, ::testing::Values(80, 90),
                         ::testing::PrintToStringParamName());

template <class T>
struct Triples {
  std::vector<T> a, b, c;
  int count() const { return static_cast<int>(a.size()); }
};

/// Every triple of the special values, then random ones.
template <class T, class Draw>
Triples<T> makeTriples(const std::vector<T>& special, Draw draw) {
  Triples<T> triples;
  const auto add = [&](T a, T b, T c) {
    triples.a.push_back(a);
    triples.b.push_back(b);
    triples.c.push_back(c);
  };
  for (const T a : special) {
    for (const T b : special) {
      for (const T c : special) add(a, b, c);
    }
  }
  for (int i = 0; i < 4000; ++i) add(draw(), draw(), draw());
  return triples;
}

LaunchShape over(int count) { return shape(static_cast<std::uint32_t>(count + 127) / 128, 128); }

template <class F>
Triples<F> floatTriples() {
  using Limits = std::numeric_limits<F>;
  static std::mt19937_64 random(7);
  const std::vector<F> special{F(0),
                               -F(0),
                               F(1),
                               F(-1.5),
                               F(2.5),
                               Limits::max(),
                               Limits::min(),
                               Limits::denorm_min(),
                               F(-0.3),
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN()};
  return makeTriples<F>(special, [&] {
    const double mantissa = std::uniform_real_distribution<double>(-2, 2)(random);
    const int exponent = std::uniform_int_distribution<int>(-60, 60)(random);
    return static_cast<F>(std::ldexp(mantissa, exponent / (random() % 3 == 0 ? 1 : 20)));
  });
}

/// Two NaNs are the same whatever they carry.
template <class F>
bool same(F a, F b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST_P(PtxArithmetic, integersAreTheHosts) {
  std::mt19937_64 random(5);
  const auto triples = makeTriples<u64>({0, 1, 2, 31, 32, 63, 0x7fffffff, 0x80000000, 0xffffffff,
                                         0x123456789abcdef0, 0x8000000000000000, ~u64{0}},
                                        [&] { return random() >> (random() % 64); });
  const int count = triples.count();
  std::vector<u64> out(static_cast<std::size_t>(count) * probe::kIntegerOperations);
  const auto module = loadProbe("arithmetic", GetParam());
  runKernel(*module, "integers", over(count), out.data(), triples.a.data(), triples.b.data(),
            triples.c.data(), count);
  for (int which = 0; which < probe::kIntegerOperations; ++which) {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const u64 expected = probe::integerOperation(which, triples.a[at], triples.b[at], triples.c[at]);
      ASSERT_EQ(out[static_cast<std::size_t>(which) * triples.a.size() + at], expected)
          << "operation " << which << std::hex << " of " << triples.a[at] << ' ' << triples.b[at] << ' '
          << triples.c[at];
    }
  }
}

/// `operation(which, a, b, c)` on the host must give the bits that the kernel gives.
template <class F, class Operation>
void compareFloats(int architecture, const std::string& kernel, int operations, Operation operation) {
  const auto triples = floatTriples<F>();
  const int count = triples.count();
  std::vector<F> out(static_cast<std::size_t>(count * operations));
  const auto module = loadProbe("arithmetic", architecture);
  runKernel(*module, kernel, over(count), out.data(), triples.a.data(), triples.b.data(), triples.c.data(),
            count);
  for (int which = 0; which < operations; ++which) {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const F expected = operation(which, triples.a[at], triples.b[at], triples.c[at]);
      const F found = out[static_cast<std::size_t>(which) * triples.a.size() + at];
      ASSERT_TRUE(same(found, expected))
          << kernel << ' ' << which << " of " << triples.a[at] << ", " << triples.b[at] << ", "
          << triples.c[at] << ": " << found << ", expected " << expected;
    }
  }
}

/// The device orders -0 below +0, which the host's fmin and fmax need not.
template <class F>
F extreme(F a, F b, bool least) {
  if (a == 0 && b == 0) return std::signbit(a) == least ? a : b;
  return least ? std::fmin(a, b) : std::fmax(a, b);
}

TEST_P(PtxArithmetic, singlesAreTheHosts) {
  compareFloats<float>(
      GetParam(), "singles", probe::kSingleOperations, [](int which, float a, float b, float c) {
        return which == 6 || which == 7 ? extreme(a, b, which == 6) : probe::singleOperation(which, a, b, c);
      });
}

TEST_P(PtxArithmetic, doublesAreTheHosts) {
  compareFloats<double>(GetParam(), "doubles", probe::kDoubleOperations,
                        [](int which, double a, double b, double c) {
                          return which == 5 ? extreme(a, b, true) + extreme(b, c, false)
                                            : probe::doubleOperation(which, a, b, c);
                        });
}

/// The operation computed by the host under a rounding mode of its own.
float roundedBy(int mode, int operation, float a, float b, float c) {
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(kModes[mode]);
  volatile float x = a, y = b, z = c;
  volatile float result = 0;
  switch (operation) {
    case 0:
      result = x + y;
      break;
    case 1:
      result = x * y;
      break;
    case 2:
      result = x / y;
      break;
    case 3:
      result = std::sqrt(x);
      break;
    default:
      result = std::fma(x, y, z);
      break;
  }
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST_P(PtxArithmetic, eachRoundingIsTheHosts) {
  compareFloats<float>(GetParam(), "roundings", 20, [](int which, float a, float b, float c) {
    return roundedBy(which % 4, which / 4, a, b, c);
  });
}

/// x rounded to an integral value, by the rule of that number: nearest, zero, down, up.
double integral(double x, int rounding) {
  switch (rounding) {
    case 0:
      return std::nearbyint(x);
    case 1:
      return std::trunc(x);
    case 2:
      return std::floor(x);
    default:
      return std::ceil(x);
  }
}

/// Clamped; for a NaN what PTX defines.
template <class Integer>
s64 clamped(double x, int rounding, Integer for_nan) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(x)) return static_cast<s64>(for_nan);
  const double whole = integral(x, rounding);
  if (whole >= std::ldexp(1.0, Limits::digits)) return static_cast<s64>(Limits::max());
  if (whole < static_cast<double>(Limits::min())) return static_cast<s64>(Limits::min());
  return static_cast<s64>(static_cast<Integer>(whole));
}

s64 expectedInteger(int which, float x, double y) {
  const s64 top = std::numeric_limits<s64>::min();
  if (which < 4) return clamped<std::int32_t>(double{x}, which % 4, 0);
  if (which < 8) return clamped<s64>(double{x}, which % 4, top);
  if (which < 12) return clamped<std::int32_t>(y, which % 4, std::numeric_limits<std::int32_t>::min());
  if (which < 16) return clamped<s64>(y, which % 4, top);
  if (which == 16) return clamped<std::uint32_t>(double{x}, 1, 0);
  return clamped<u64>(double{x}, 1, u64{1} << 63);
}

TEST_P(PtxArithmetic, floatsBecomeIntegersAsPtxDefines) {
  auto singles = floatTriples<float>().a;
  auto doubles = floatTriples<double>().a;
  for (const double edge :
       {2147483647.0, 2147483648.0, -2147483648.5, 9.3e18, -9.3e18, 4294967295.5, 1.9e19, 0.5, 1.5}) {
    singles.push_back(static_cast<float>(edge));
    doubles.push_back(edge);
  }
  const int count = static_cast<int>(singles.size());
  std::vector<s64> out(static_cast<std::size_t>(count) * 18);
  const auto module = loadProbe("arithmetic", GetParam());
  runKernel(*module, "toIntegers", over(count), out.data(), singles.data(), doubles.data(), count);
  for (int which = 0; which < 18; ++which) {
    for (int i = 0; i < count; ++i) {
      const float x = singles[static_cast<std::size_t>(i)];
      const double y = doubles[static_cast<std::size_t>(i)];
      ASSERT_EQ(out[static_cast<std::size_t>(which * count + i)], expectedInteger(which, x, y))
          << "conversion " << which << " of " << x << " and " << y;
    }
  }
}

TEST_P(PtxArithmetic, integersBecomeFloatsInEachRounding) {
  std::mt19937_64 random(11);
  std::vector<s64> in{0,
                      1,
                      -1,
                      16777217,
                      -16777219,
                      33554435,
                      std::numeric_limits<s64>::max(),
                      std::numeric_limits<s64>::min(),
                      (s64{1} << 54) + 1,
                      (s64{1} << 62) + (s64{1} << 38) + 1};
  for (int i = 0; i < 4000; ++i) in.push_back(static_cast<s64>(random()) >> (random() % 64));
  const int count = static_cast<int>(in.size());
  std::vector<float> out(static_cast<std::size_t>(count) * 8);
  const auto module = loadProbe("arithmetic", GetParam());
  runKernel(*module, "fromIntegers", over(count), out.data(), in.data(), count);
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  for (int which = 0; which < 8; ++which) {
    for (int i = 0; i < count; ++i) {
      std::fesetround(kModes[which % 4]);
      volatile s64 x = in[static_cast<std::size_t>(i)];
      volatile float expected =
          which < 4 ? static_cast<float>(x) : static_cast<float>(static_cast<std::int32_t>(x));
      std::fesetround(FE_TONEAREST);
      ASSERT_EQ(out[static_cast<std::size_t>(which * count + i)], expected)
          << "conversion " << which << " of " << x;
    }
  }
}

}  // namespace
}  // namespace tutti::emulator
