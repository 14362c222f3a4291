// The steps of combine that the compiler's vectors do not have, for any target: 16 bytes at a time.
#pragma once

#include <cstddef>

namespace tutti {
namespace {
inline constexpr std::size_t kVectorBytes = 16;
}
}  // namespace tutti

#include "kernels/host/simd_vector.h"

namespace tutti {
namespace {

// From 8 to 32 bits takes two steps: GCC does one step of a factor of four lane by lane.
[[gnu::always_inline]] inline U32 widenCodes(Codes16 codes) { return __builtin_convertvector(codes, U32); }
[[gnu::always_inline]] inline Codes16 narrowCodes(U32 codes) {
  return __builtin_convertvector(codes, Codes16);
}
[[gnu::always_inline]] inline Codes16 loadBytes(const std::byte* from) {
  return __builtin_convertvector(loadVector<Codes8>(from), Codes16);
}
[[gnu::always_inline]] inline void storeBytes(std::byte* to, Codes16 codes) {
  storeVector(to, __builtin_convertvector(codes, Codes8));
}

// float16 has 5 bits of exponent with bias 15, and 10 of mantissa: its normal numbers are those of float with
// the exponent moved and the mantissa shifted. Its subnormals are whole multiples of 2^-24.
inline constexpr std::int32_t kFloat16Rebias = (127 - 15) << 23;

[[gnu::always_inline]] inline F32 float16ToFloat(Codes16 codes) {
  const I32 code = bitsAs<I32>(widenCodes(codes));
  const I32 magnitude = code & 0x7fff;
  const I32 normal = (magnitude << 13) + kFloat16Rebias;
  // No denormal float takes part, so flushing them does no harm.
  const F32 subnormal = __builtin_convertvector(magnitude, F32) * 0x1p-24F;
  const I32 finite = magnitude < 0x0400 ? bitsAs<I32>(subnormal) : normal;
  const I32 special = normal | 0x7f800000;  // infinity keeps its empty mantissa, NaN its own
  return bitsAs<F32>((magnitude >= 0x7c00 ? special : finite) | ((code & 0x8000) << 16));
}

/// Rounds to nearest even; for NaN all bits of magnitude are set.
[[gnu::always_inline]] inline Codes16 floatToFloat16(F32 values) {
  const I32 bits = bitsAs<I32>(values);
  const I32 magnitude = bits & 0x7fffffff;
  const I32 exact = magnitude - kFloat16Rebias;
  const I32 normal = (exact + ((exact >> 13) & 1) + 0x0fff) >> 13;
  // The last bit of numbers from 0.5 to 1 is worth 2^-24, so the addition does the rounding.
  const I32 subnormal = bitsAs<I32>(bitsAs<F32>(magnitude) + 0.5F) - 0x3f000000;
  const I32 rounded = magnitude < kFloat16Rebias + (1 << 23) ? subnormal : normal;
  const I32 finite = rounded > 0x7c00 ? I32{} + 0x7c00 : rounded;  // what is too large is infinity
  const I32 code = magnitude > 0x7f800000 ? I32{} + 0x7fff : finite;
  return narrowCodes(bitsAs<U32>(code | ((bits >> 16) & 0x8000)));
}

}  // namespace
}  // namespace tutti
