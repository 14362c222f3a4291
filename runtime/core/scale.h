// What an own contribution is multiplied by before it is added: the 1/n of avg, the scalar of PreMulSum.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/core/types.h"

namespace tutti {

/// For floating-point types the bits of a double, which holds every value of each of them; for integer types
/// a 64-bit integer, of which a narrower type uses the low bits: multiplication wraps.
struct Scale {
  std::uint64_t bits;  // not initialized: executors have arrays of scales, of which they use few

  double asDouble() const { return std::bit_cast<double>(bits); }
  bool operator==(const Scale&) const = default;
};
static_assert(sizeof(Scale) == 8);

/// Leaves a contribution as it is.
inline Scale unitScale(DataType type) {
  return {isFloatingPoint(type) ? std::bit_cast<std::uint64_t>(1.0) : 1};
}

/// avg of floating-point types: 1/n in what the type computes in, double for double and float for the others.
/// Integers are not scaled: their sum is divided at the end.
inline Scale averageScale(DataType type, int nranks) {
  if (!isFloatingPoint(type)) return unitScale(type);
  const double scale = type == DataType::float64 ? 1.0 / nranks : double{1.0F / static_cast<float>(nranks)};
  return {std::bit_cast<std::uint64_t>(scale)};
}

/// The value of a type of less than 32 bits: sign, exponent and mantissa fields from the top; the OCP names
/// e4m3 and e5m2 say their widths. e4m3 has no infinity, and one NaN per sign.
inline double narrowFloatValue(DataType type, std::uint32_t bits) {
  const int exponent_bits = type == DataType::bfloat16 ? 8 : (type == DataType::float8e4m3 ? 4 : 5);
  const int width = static_cast<int>(sizeOf(type)) * 8;
  const int mantissa_bits = width - 1 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(bits & ((1U << mantissa_bits) - 1));
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits >> (width - 1) & 1) != 0 ? -1.0 : 1.0;
  if (type == DataType::float8e4m3) {
    if ((bits & 0x7f) == 0x7f) return NAN;
  } else if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? NAN : sign * HUGE_VAL;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

/// The scalar at `value`, which lies in host memory and has the type; no alignment is required.
inline Scale scaleFrom(DataType type, const void* value) {
  const auto read = [value](auto typed) {
    std::memcpy(&typed, value, sizeof(typed));
    return typed;
  };
  switch (type) {
    case DataType::int8:
      return {static_cast<std::uint64_t>(read(std::int8_t{}))};
    case DataType::uint8:
      return {read(std::uint8_t{})};
    case DataType::int32:
      return {static_cast<std::uint64_t>(read(std::int32_t{}))};
    case DataType::uint32:
      return {read(std::uint32_t{})};
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
      return {read(std::uint64_t{})};
    case DataType::float32:
      return {std::bit_cast<std::uint64_t>(double{read(float{})})};
    case DataType::float16:
    case DataType::bfloat16:
      return {std::bit_cast<std::uint64_t>(narrowFloatValue(type, read(std::uint16_t{})))};
    case DataType::float8e4m3:
    case DataType::float8e5m2:
      return {std::bit_cast<std::uint64_t>(narrowFloatValue(type, read(std::uint8_t{})))};
  }
  return unitScale(type);
}

}  // namespace tutti
