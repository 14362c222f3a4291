// Floating-point types narrower than float, by their bits: half, bfloat16, and the two 8-bit types of the OCP
// specification. Written for the checks, apart from the library's own conversions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tutti::perf {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;  ///< stored ones; the significand has one more
  bool has_infinity;  ///< as in IEEE 754; else the largest exponent holds numbers, and one NaN per sign
  bool saturates;     ///< what is too large becomes the largest number, not infinity

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int digits() const { return mantissa_bits + 1; }
  constexpr int smallestExponent() const { return 1 - bias(); }  ///< of a normal number
  constexpr std::uint32_t signBit() const { return 1U << (exponent_bits + mantissa_bits); }
  /// Bits of the largest finite number.
  constexpr std::uint32_t largest() const {
    return has_infinity ? (((1U << exponent_bits) - 1) << mantissa_bits) - 1 : signBit() - 2;
  }
};

inline constexpr FloatFormat kHalfFormat{5, 10, true, false};
inline constexpr FloatFormat kBfloat16Format{8, 7, true, false};
inline constexpr FloatFormat kFloat8E4m3Format{4, 3, false, true};
inline constexpr FloatFormat kFloat8E5m2Format{5, 2, true, true};

/// Two to the power of `exponent`, a normal number of double.
constexpr double powerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The bits of `value`, rounded to nearest, ties to even.
constexpr std::uint32_t encode(const FloatFormat& format, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = bits >> 63 == 0 ? 0 : format.signBit();
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (value != value) return sign | (format.signBit() - 1);
  const int below_normal = format.smallestExponent() > exponent ? format.smallestExponent() - exponent : 0;
  const int shift = 52 - format.mantissa_bits + below_normal;
  if (shift > 53) return sign;  // less than half of the smallest number
  const std::uint64_t significand = (bits & 0xfffffffffffffU) | 0x10000000000000U;
  const std::uint64_t to_even = (std::uint64_t{1} << (shift - 1)) - 1 + (significand >> shift & 1);
  const auto rounded = static_cast<std::int64_t>((significand + to_even) >> shift);
  // The hidden bit, where there is one, adds 1 to the exponent field.
  const std::int64_t field = below_normal > 0 ? 0 : exponent + format.bias() - 1;
  const std::int64_t magnitude = (field << format.mantissa_bits) + rounded;
  if (magnitude > format.largest()) return sign | (format.largest() + (format.saturates ? 0 : 1));
  return sign | static_cast<std::uint32_t>(magnitude);
}

constexpr double decode(const FloatFormat& format, std::uint32_t bits) {
  const double sign = (bits & format.signBit()) == 0 ? 1 : -1;
  const std::uint32_t magnitude = bits & (format.signBit() - 1);
  if (magnitude > format.largest()) {
    const bool infinite = format.has_infinity && magnitude == format.largest() + 1;
    return infinite ? sign * std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  const std::uint32_t field = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const int exponent = field == 0 ? format.smallestExponent() : static_cast<int>(field) - format.bias();
  const double significand = mantissa + (field == 0 ? 0 : powerOfTwo(format.mantissa_bits));
  return sign * significand * powerOfTwo(exponent - format.mantissa_bits);
}

/// One element of such a type.
template <FloatFormat kOf>
struct Minifloat {
  static constexpr FloatFormat kFormat = kOf;
  std::conditional_t<kOf.exponent_bits + kOf.mantissa_bits == 7, std::uint8_t, std::uint16_t> bits;
};

using Half = Minifloat<kHalfFormat>;
using Bfloat16 = Minifloat<kBfloat16Format>;
using Float8E4m3 = Minifloat<kFloat8E4m3Format>;
using Float8E5m2 = Minifloat<kFloat8E5m2Format>;

}  // namespace tutti::perf
