// Floating-point instructions of PTX, on bits. What the host rounds as the instruction asks is left to the
// host, also doubles in other roundings, which it has a mode for; floats in other roundings and the 16-bit
// types go by way of double, rounded to odd first, so that rounding again is exact.
#pragma once

#include <cfenv>

#include "tools/cuda_emulator/machine/device/types.h"

namespace tutti::emulator {

/// A format of at most 32 bits: its largest finite code and its canonical NaN, sign aside.
template <class T>
struct Format;
template <>
struct Format<f32> {
  static constexpr u32 kBits = 32, kExponent = 8, kMantissa = 23, kMost = 0x7f7fffff,
                       kNotANumber = 0x7fffffff;
};
template <>
struct Format<f16> {
  static constexpr u32 kBits = 16, kExponent = 5, kMantissa = 10, kMost = 0x7bff, kNotANumber = 0x7fff;
};
template <>
struct Format<bf16> {
  static constexpr u32 kBits = 16, kExponent = 8, kMantissa = 7, kMost = 0x7f7f, kNotANumber = 0x7fff;
};
template <>
struct Format<e4m3> {
  static constexpr u32 kBits = 8, kExponent = 4, kMantissa = 3, kMost = 0x7e, kNotANumber = 0x7f;
};
template <>
struct Format<e5m2> {
  static constexpr u32 kBits = 8, kExponent = 5, kMantissa = 2, kMost = 0x7b, kNotANumber = 0x7f;
};

/// Exact.
template <class T>
inline double widen(Bits<T> bits) {
  if constexpr (__is_same(T, f64)) return bitCast<double>(bits);
  if constexpr (__is_same(T, f32)) return static_cast<double>(bitCast<float>(bits));
  if constexpr (__is_same(T, bf16)) return static_cast<double>(bitCast<float>(static_cast<u32>(bits) << 16));
  if constexpr (sizeof(Bits<T>) <= 2 && !__is_same(T, bf16)) {
    using F = Format<T>;
    const u32 magnitude = bits & ((1u << (F::kBits - 1)) - 1);
    const u64 sign = static_cast<u64>(bits >> (F::kBits - 1)) << 63;
    if (magnitude > F::kMost) {
      const bool infinite = !__is_same(T, e4m3) && magnitude == F::kMost + 1;
      return bitCast<double>(sign | (infinite ? 0x7ffull << 52 : 0x7ff8ull << 48));
    }
    constexpr int kBias = (1 << (F::kExponent - 1)) - 1;
    // As a double of 2^bias / 2^1023 of its worth, which is right for subnormal codes as well.
    const double scaled = bitCast<double>(static_cast<u64>(magnitude) << (52 - F::kMantissa));
    const double scale = bitCast<double>(static_cast<u64>(1023 + 1023 - kBias) << 52);
    return bitCast<double>(bitCast<u64>(scaled * scale) | sign);
  }
}

/// Whether the magnitude `quotient`, of which `rest` of `unit` was cut off, goes up.
inline bool roundsUp(u32 rounding, bool negative, u64 quotient, u64 rest, u64 half) {
  if (rounding == kNearest) return rest > half || (rest == half && (quotient & 1));
  if (rounding == kNearestAway) return rest >= half;
  if (rounding == kZero) return false;
  return rest != 0 && negative == (rounding == kDown);
}

/// The code of x, a finite number or infinity, in format T, sign aside.
template <class T>
inline u32 roundMagnitude(double x, u32 mode) {
  using F = Format<T>;
  constexpr int kBias = (1 << (F::kExponent - 1)) - 1;
  const u64 bits = bitCast<u64>(x);
  const bool negative = (bits >> 63) != 0;
  int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  u64 mantissa = bits & ((1ull << 52) - 1);
  if (exponent == -1023) {
    exponent = -1022;
  } else {
    mantissa |= 1ull << 52;
  }
  const int least = exponent < 1 - kBias ? 1 - kBias - exponent : 0;
  const u32 shift = 52 - F::kMantissa + static_cast<u32>(least > 60 ? 60 : least);
  const bool tiny = shift >= 63;
  const u64 quotient = tiny ? 0 : mantissa >> shift;
  const u64 rest = tiny ? (mantissa != 0) : mantissa & ((1ull << shift) - 1);
  const u64 half = tiny ? 2 : 1ull << (shift - 1);
  const u64 base = static_cast<u64>(exponent + least + kBias - 1) << F::kMantissa;
  const u32 rounding = mode & kRounding;
  const u64 code = base + quotient + (roundsUp(rounding, negative, quotient, rest, half) ? 1 : 0);
  if (code <= F::kMost) return static_cast<u32>(code);
  const bool infinite = exponent == 1024;
  const bool cut = rounding == kZero || (rounding == kDown && !negative) || (rounding == kUp && negative);
  return (mode & kSatFinite) || (cut && !infinite) ? F::kMost : F::kMost + 1;
}

/// Rounds as `mode` says. A NaN becomes the canonical one.
template <class T>
inline Bits<T> narrow(double x, u32 mode) {
  if ((mode & (kSat | kRelu)) && !(x > 0)) {
    if (x == x || (mode & kSat)) return 0;
  }
  if ((mode & kSat) && x > 1) x = 1;
  if constexpr (__is_same(T, f64)) return x == x ? bitCast<u64>(x) : 0x7fffffffffffffff;
  if constexpr (!__is_same(T, f64)) {
    using F = Format<T>;
    if (x != x) return static_cast<Bits<T>>(F::kNotANumber);
    u32 magnitude;
    if (__is_same(T, f32) && (mode & (kRounding | kSatFinite)) == kNearest) {
      magnitude = bitCast<u32>(static_cast<float>(x)) & 0x7fffffff;
    } else {
      magnitude = roundMagnitude<T>(x, mode);
    }
    if ((mode & kFtz) && magnitude < (1u << F::kMantissa)) magnitude = 0;
    const u32 sign = static_cast<u32>(bitCast<u64>(x) >> 63) << (F::kBits - 1);
    return static_cast<Bits<T>>(magnitude | sign);
  }
}

/// .ftz: a subnormal number is a zero of its sign.
template <class T, u32 kMode>
[[gnu::always_inline]] inline Bits<T> flushed(Bits<T> bits) {
  if constexpr ((kMode & kFtz) != 0 && !__is_same(T, f64)) {
    constexpr u32 kSign = 1u << (Format<T>::kBits - 1);
    if ((bits & (kSign - 1)) < (1u << Format<T>::kMantissa)) return static_cast<Bits<T>>(bits & kSign);
  }
  return bits;
}

template <class T, u32 kMode>
[[gnu::always_inline]] inline double operand(Bits<T> bits) {
  return widen<T>(flushed<T, kMode>(bits));
}

/// sum, which differs from the exact value by `error` of that sign, as the neighbour with an odd last bit.
inline double toOdd(double sum, double error) {
  const u64 bits = bitCast<u64>(sum);
  if (!(error < 0 || error > 0) || (bits & 1)) return sum;
  return bitCast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

inline double addOdd(double a, double b, u32 mode) {
  const double sum = a + b;
  if (sum == 0 && (mode & kRounding) == kDown && (bitCast<u64>(a) ^ bitCast<u64>(b)) >> 63) return -0.0;
  if (sum - sum != 0) return sum;
  const double other = sum - a;
  return toOdd(sum, (a - (sum - other)) + (b - other));
}

inline double divideOdd(double a, double b) {
  const double quotient = a / b;
  if (quotient == 0 || quotient - quotient != 0 || b - b != 0) return quotient;
  const double rest = __builtin_fma(-quotient, b, a);
  return toOdd(quotient, b > 0 ? rest : -rest);
}

inline double sqrtOdd(double a) {
  const double root = __builtin_sqrt(a);
  if (root == 0 || root - root != 0) return root;
  return toOdd(root, __builtin_fma(-root, root, a));
}

/// x, which the compiler knows nothing of and reads where this stands.
template <class T>
[[gnu::always_inline]] inline T held(T x) {
  volatile T kept = x;
  return kept;
}

/// Whether a double is to be rounded otherwise than to the nearest.
template <class T, u32 kMode>
constexpr bool kDirected = __is_same(T, f64) && (kMode & kRounding) != kNearest;

/// The double that `compute` gives while the host rounds as kMode says. Its operands must be held in it.
template <u32 kMode, class Compute>
inline u64 directed(Compute compute) {
  constexpr u32 kRequired = kMode & kRounding;
  const int before = std::fegetround();
  std::fesetround(kRequired == kZero ? FE_TOWARDZERO : kRequired == kDown ? FE_DOWNWARD : FE_UPWARD);
  const double result = held<double>(compute());
  std::fesetround(before);
  return bitCast<u64>(result);
}

/// Whether the host computes T with this mode directly.
template <class T, u32 kMode>
constexpr bool kNative = __is_same(T, f64) || (__is_same(T, f32) && (kMode & ~(kFtz | kSat)) == 0);

template <u32 kMode>
[[gnu::always_inline]] inline float flush(u32 bits) {
  return bitCast<float>(flushed<f32, kMode>(bits));
}

template <u32 kMode>
[[gnu::always_inline]] inline u32 finish(float x) {
  if constexpr ((kMode & kSat) != 0) x = x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
  return flushed<f32, kMode>(x == x ? bitCast<u32>(x) : 0x7fffffff);
}

template <class T, u32 kMode>
inline Bits<T> addFloat(Bits<T> a, Bits<T> b) {
  if constexpr (kDirected<T, kMode>) {
    return directed<kMode>([&] { return held(bitCast<double>(a)) + held(bitCast<double>(b)); });
  }
  if constexpr (__is_same(T, f64)) return bitCast<u64>(bitCast<double>(a) + bitCast<double>(b));
  if constexpr (__is_same(T, f32) && kNative<T, kMode>)
    return finish<kMode>(flush<kMode>(a) + flush<kMode>(b));
  if constexpr (!kNative<T, kMode>)
    return narrow<T>(addOdd(operand<T, kMode>(a), operand<T, kMode>(b), kMode), kMode);
}

template <class T, u32 kMode>
[[gnu::always_inline]] inline Bits<T> negFloat(Bits<T> a) {
  return static_cast<Bits<T>>(flushed<T, kMode>(a) ^ (Bits<T>(1) << (sizeof(a) * 8 - 1)));
}

template <class T, u32 kMode>
inline Bits<T> subFloat(Bits<T> a, Bits<T> b) {
  return addFloat<T, kMode>(a, negFloat<T, 0>(b));
}

template <class T, u32 kMode>
inline Bits<T> mulFloat(Bits<T> a, Bits<T> b) {
  if constexpr (kDirected<T, kMode>) {
    return directed<kMode>([&] { return held(bitCast<double>(a)) * held(bitCast<double>(b)); });
  }
  if constexpr (__is_same(T, f64)) return bitCast<u64>(bitCast<double>(a) * bitCast<double>(b));
  if constexpr (__is_same(T, f32) && kNative<T, kMode>)
    return finish<kMode>(flush<kMode>(a) * flush<kMode>(b));
  if constexpr (!kNative<T, kMode>) return narrow<T>(operand<T, kMode>(a) * operand<T, kMode>(b), kMode);
}

template <class T, u32 kMode>
inline Bits<T> fmaFloat(Bits<T> a, Bits<T> b, Bits<T> c) {
  if constexpr (kDirected<T, kMode>) {
    return directed<kMode>([&] {
      return __builtin_fma(held(bitCast<double>(a)), held(bitCast<double>(b)), held(bitCast<double>(c)));
    });
  }
  if constexpr (__is_same(T, f64)) {
    return bitCast<u64>(__builtin_fma(bitCast<double>(a), bitCast<double>(b), bitCast<double>(c)));
  }
  if constexpr (__is_same(T, f32) && kNative<T, kMode>) {
    return finish<kMode>(__builtin_fmaf(flush<kMode>(a), flush<kMode>(b), flush<kMode>(c)));
  }
  if constexpr (!kNative<T, kMode>) {
    const double product = operand<T, kMode>(a) * operand<T, kMode>(b);
    return narrow<T>(addOdd(product, operand<T, kMode>(c), kMode), kMode);
  }
}

template <class T, u32 kMode>
inline Bits<T> divFloat(Bits<T> a, Bits<T> b) {
  if constexpr (kDirected<T, kMode>) {
    return directed<kMode>([&] { return held(bitCast<double>(a)) / held(bitCast<double>(b)); });
  }
  if constexpr (__is_same(T, f64)) return bitCast<u64>(bitCast<double>(a) / bitCast<double>(b));
  return narrow<T>(divideOdd(operand<T, kMode>(a), operand<T, kMode>(b)), kMode);
}

template <class T, u32 kMode>
inline Bits<T> sqrtFloat(Bits<T> a) {
  if constexpr (kDirected<T, kMode>) {
    return directed<kMode>([&] { return __builtin_sqrt(held(bitCast<double>(a))); });
  }
  if constexpr (__is_same(T, f64)) return bitCast<u64>(__builtin_sqrt(bitCast<double>(a)));
  return narrow<T>(sqrtOdd(operand<T, kMode>(a)), kMode);
}

template <class T, u32 kMode>
inline Bits<T> rcpFloat(Bits<T> a) {
  if constexpr (kDirected<T, kMode>) {
    return directed<kMode>([&] { return 1.0 / held(bitCast<double>(a)); });
  }
  if constexpr (__is_same(T, f64)) return bitCast<u64>(1.0 / bitCast<double>(a));
  return narrow<T>(divideOdd(1.0, operand<T, kMode>(a)), kMode);
}

/// The functions the hardware approximates: the host's libm, rounded once.
enum class Function : u32 { Exp2, Log2, Sin, Cos, Tanh, Rsqrt };

template <class T, u32 kMode, Function kFunction>
inline Bits<T> approximate(Bits<T> a) {
  const double x = operand<T, kMode>(a);
  if constexpr (kFunction == Function::Exp2) return narrow<T>(__builtin_exp2(x), kMode);
  if constexpr (kFunction == Function::Log2) return narrow<T>(__builtin_log2(x), kMode);
  if constexpr (kFunction == Function::Sin) return narrow<T>(__builtin_sin(x), kMode);
  if constexpr (kFunction == Function::Cos) return narrow<T>(__builtin_cos(x), kMode);
  if constexpr (kFunction == Function::Tanh) return narrow<T>(__builtin_tanh(x), kMode);
  if constexpr (kFunction == Function::Rsqrt) return narrow<T>(1.0 / __builtin_sqrt(x), kMode);
}

template <class T, u32 kMode>
inline Bits<T> absFloat(Bits<T> a) {
  return static_cast<Bits<T>>(flushed<T, kMode>(a) & ~(Bits<T>(1) << (sizeof(a) * 8 - 1)));
}

/// The number when one operand is NaN, except with .NaN; -0 is less than +0.
template <class T, u32 kMode, bool kMax>
inline Bits<T> extremeFloat(Bits<T> a, Bits<T> b) {
  const double x = operand<T, kMode>(a);
  const double y = operand<T, kMode>(b);
  if (x != x || y != y) {
    if ((kMode & kNan) || (x != x && y != y)) return narrow<T>(__builtin_nan(""), 0);
    return narrow<T>(x != x ? y : x, kMode & kFtz);
  }
  const bool first_less = x < y || (x == y && (bitCast<u64>(x) >> 63) != 0);
  return narrow<T>(first_less == kMax ? y : x, kMode & kFtz);
}

template <class T>
inline Bits<T> copySign(Bits<T> sign, Bits<T> magnitude) {
  constexpr auto kTop = static_cast<Bits<T>>(Bits<T>(1) << (sizeof(Bits<T>) * 8 - 1));
  return static_cast<Bits<T>>((sign & kTop) | (magnitude & ~kTop));
}

/// 0 finite, 1 infinite, 2 number (not NaN), 3 NaN, 4 normal, 5 subnormal.
template <class T>
inline bool testFloat(Bits<T> a, u32 what) {
  const double x = widen<T>(a);
  const double magnitude = __builtin_fabs(x);
  const double least = __is_same(T, f32) ? 0x1p-126 : 0x1p-1022;
  switch (what) {
    case 0:
      return magnitude < __builtin_inf();
    case 1:
      return magnitude == __builtin_inf();
    case 2:
      return x == x;
    case 3:
      return x != x;
    case 4:
      return magnitude < __builtin_inf() && magnitude >= least;
    default:
      return magnitude > 0 && magnitude < least;
  }
}

}  // namespace tutti::emulator
