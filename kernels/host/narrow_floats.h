// bfloat16, float16, and float8 e4m3 and e5m2: from memory to vectors of float, and back. A source that
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

/// The upper half of a float.
struct BFloat16Memory {
  static constexpr std::size_t kBytes = 2;

  [[gnu::always_inline]] static F32 load(const std::byte* from) {
    return bitsAs<F32>(widenCodes(loadVector<Codes16>(from)) << 16);
  }
  [[gnu::always_inline]] static void store(std::byte* to, F32 value) {
    const U32 bits = bitsAs<U32>(value);
    const U32 rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    storeVector(to, narrowCodes(isNaN(value) ? U32{} + 0x7fffU : rounded));
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
  const F32 unit = bitsAs<F32>((exponent > smallest ? exponent : smallest) + ((23 - kMantissa) << 23));
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
