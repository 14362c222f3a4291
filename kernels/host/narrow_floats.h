// float16, float8 e4m3 and e5m2 to and from float, by arithmetic on vectors of 32-bit lanes. bfloat16 too.
// Widening is exact. Narrowing rounds to nearest even; a NaN becomes the canonical one.
#pragma once

#include "kernels/host/simd_vector.h"

namespace tutti {
namespace {

inline constexpr std::int32_t kFloatInfinity = 0x7f800000;
inline constexpr std::int32_t kFloatMagnitude = 0x7fffffff;

/// A format of 1 sign bit, kExponent bits of exponent, kMantissa of mantissa. With infinity it has IEEE's
/// special values, else its only one is NaN, all bits set. What is too large becomes infinity or the largest
/// finite value.
template <int kExponent, int kMantissa, bool kHasInfinity, bool kSaturates>
struct NarrowFloat {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kSignShift = kExponent + kMantissa;
  static constexpr std::int32_t kMagnitude = (1 << kSignShift) - 1;
  static constexpr std::int32_t kFirstSpecial =
      kHasInfinity ? ((1 << kExponent) - 1) << kMantissa : kMagnitude;
  static constexpr std::int32_t kFirstNaN = kHasInfinity ? kFirstSpecial + 1 : kFirstSpecial;
  static constexpr std::int32_t kLargest = kSaturates ? kFirstSpecial - 1 : kFirstSpecial;
  static constexpr int kShift = 23 - kMantissa;
  static constexpr std::int32_t kRebias = (127 - kBias) << 23;
  static constexpr float kSubnormalUnit = 1.0F / static_cast<float>(1 << (kBias - 1 + kMantissa));

  [[gnu::always_inline]] static F32 widen(U32 code) {
    const I32 magnitude = bitsAs<I32>(code) & kMagnitude;
    const I32 normal = (magnitude << kShift) + kRebias;
    // Subnormals are whole multiples of one unit; no denormal float takes part, so flushing them does no
    // harm.
    const F32 subnormal = __builtin_convertvector(magnitude, F32) * kSubnormalUnit;
    I32 result = magnitude < (1 << kMantissa) ? bitsAs<I32>(subnormal) : normal;
    const I32 special = magnitude >= kFirstNaN ? I32{} + kFloatMagnitude : I32{} + kFloatInfinity;
    result = magnitude >= kFirstSpecial ? special : result;
    const I32 sign = (bitsAs<I32>(code) & (1 << kSignShift)) << (31 - kSignShift);
    return bitsAs<F32>(result | sign);
  }

  [[gnu::always_inline]] static U32 narrow(F32 value) {
    const I32 bits = bitsAs<I32>(value);
    const I32 magnitude = bits & kFloatMagnitude;
    const I32 exact = magnitude - kRebias;
    const I32 normal = (exact + ((exact >> kShift) & 1) + ((1 << (kShift - 1)) - 1)) >> kShift;
    // Adding a number whose last bit is worth one unit lets the addition do the rounding.
    constexpr float kMagic = kSubnormalUnit * (1 << 23);
    const I32 subnormal =
        bitsAs<I32>(bitsAs<F32>(magnitude) + kMagic) - __builtin_bit_cast(std::int32_t, kMagic);
    I32 code = magnitude < kRebias + (1 << 23) ? subnormal : normal;
    code = code > kLargest ? I32{} + kLargest : code;
    code = code | ((bits >> (31 - kSignShift)) & (1 << kSignShift));
    return bitsAs<U32>(magnitude > kFloatInfinity ? I32{} + kMagnitude : code);
  }
};

using Float16Code = NarrowFloat<5, 10, true, false>;
using Float8E4M3Code = NarrowFloat<4, 3, false, true>;
using Float8E5M2Code = NarrowFloat<5, 2, true, true>;

struct BFloat16Code {
  [[gnu::always_inline]] static F32 widen(U32 code) { return bitsAs<F32>(code << 16); }

  [[gnu::always_inline]] static U32 narrow(F32 value) {
    const U32 bits = bitsAs<U32>(value);
    const U32 rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    return bitsAs<U32>(value != value ? I32{} + 0x7fff : bitsAs<I32>(rounded));
  }
};

}  // namespace
}  // namespace tutti
