// float16, bfloat16, and float8 e4m3 and e5m2: from memory to vectors of float, and back. A source that
// includes this has included the simd_*.h of its instruction set before.
//
// Reading is exact. Storing rounds to nearest even; a NaN becomes the canonical one.
#pragma once

#include "kernels/host/simd_vector.h"

namespace tutti {
namespace {

inline constexpr std::int32_t kMagnitudeBits = 0x7fffffff;  ///< of a float; its canonical NaN as well

[[gnu::always_inline]] inline F32 canonicalNaN(F32 value) {
  return isNaN(value) ? bitsAs<F32>(I32{} + kMagnitudeBits) : value;
}

/// Two vectors of float that lie in memory as one vector of bfloat16, element by element in turn.
struct FloatPair {
  F32 even;
  F32 odd;
};
[[gnu::always_inline]] inline FloatPair operator+(FloatPair a, FloatPair b) {
  return {a.even + b.even, a.odd + b.odd};
}
[[gnu::always_inline]] inline FloatPair operator*(FloatPair a, FloatPair b) {
  return {a.even * b.even, a.odd * b.odd};
}
[[gnu::always_inline]] inline FloatPair operator*(FloatPair a, float b) { return {a.even * b, a.odd * b}; }

/// The upper half of a float, so that neither widening nor narrowing moves anything across lanes.
struct BFloat16Memory {
  static constexpr std::uint32_t kUpper = 0xffff0000U;

  [[gnu::always_inline]] static FloatPair load(const std::byte* from) {
    const U32 both = loadVector<U32>(from);
    return {bitsAs<F32>(both << 16), bitsAs<F32>(both & kUpper)};
  }
  /// The upper half of each lane is the code.
  [[gnu::always_inline]] static U32 round(F32 value) {
    const U32 bits = bitsAs<U32>(value);
    const U32 rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    return isNaN(value) ? U32{} + 0x7fff0000U : rounded;
  }
  [[gnu::always_inline]] static void store(std::byte* to, FloatPair value) {
    storeVector(to, (round(value.odd) & kUpper) | (round(value.even) >> 16));
  }
};

struct Float16Memory {
  static constexpr std::size_t kBytes = 2;

  [[gnu::always_inline]] static F32 load(const std::byte* from) {
    return float16ToFloat(loadVector<Codes16>(from));
  }
  [[gnu::always_inline]] static void store(std::byte* to, F32 value) {
    storeVector(to, floatToFloat16(canonicalNaN(value)));
  }
};

/// Rounds to kMantissa bits of mantissa, and to multiples of the smallest subnormal below kSmallestNormal;
/// saturates at kLargest. The result is a float; NaN stays. Adding a number whose last bit is worth one unit
/// of the result, and subtracting it again, lets the addition do the rounding.
template <int kMantissa, int kSmallestNormalExponent>
[[gnu::always_inline]] inline F32 roundToFloat8(F32 value, float largest) {
  const I32 bits = bitsAs<I32>(value);
  const F32 magnitude = bitsAs<F32>(bits & kMagnitudeBits);
  const F32 most = F32{} + largest;
  const F32 clamped = most < magnitude ? most : magnitude;
  const I32 smallest = I32{} + ((kSmallestNormalExponent + 127) << 23);
  const I32 exponent = bitsAs<I32>(clamped) & 0x7f800000;
  const U32 larger = bitsAs<U32>(exponent > smallest ? exponent : smallest);
  const F32 unit =
      bitsAs<F32>(larger + ((23U - kMantissa) << 23));  // wraps for NaN, whatever the unit: NaN stays
  const F32 rounded = (clamped + unit) - unit;
  return bitsAs<F32>(bitsAs<I32>(rounded) | (bits & ~kMagnitudeBits));
}

/// The upper half of a float16.
struct Float8E5M2Memory {
  static constexpr std::size_t kBytes = 1;

  [[gnu::always_inline]] static F32 load(const std::byte* from) {
    return float16ToFloat(loadBytes(from) << 8);
  }
  [[gnu::always_inline]] static void store(std::byte* to, F32 value) {
    storeBytes(to, floatToFloat16(roundToFloat8<2, -14>(canonicalNaN(value), 57344.0F)) >> 8);
  }
};

/// A float16 that is 2^8 times smaller, without its upper exponent bit and lower mantissa bits. No infinity;
/// the code of what would be 480 is NaN.
struct Float8E4M3Memory {
  static constexpr std::size_t kBytes = 1;

  [[gnu::always_inline]] static F32 load(const std::byte* from) {
    const Codes16 code = loadBytes(from);
    const Codes16 number = ((code & 0x80) << 8) | ((code & 0x7f) << 7);
    // All ones, the result of a comparison that holds, are a float16 that is NaN.
    const auto is_nan = bitsAs<Codes16>((code & 0x7f) == 0x7f);
    return float16ToFloat(number | is_nan) * 0x1p8F;
  }
  [[gnu::always_inline]] static void store(std::byte* to, F32 value) {
    const Codes16 code = floatToFloat16(roundToFloat8<3, -6>(canonicalNaN(value), 448.0F) * 0x1p-8F);
    storeBytes(to, ((code >> 8) & 0x80) | ((code >> 7) & 0x7f));
  }
};

}  // namespace
}  // namespace tutti
