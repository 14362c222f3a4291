// NCCL's data types by their definitions, for numbers that they hold exactly.
#pragma once

#include <nccl.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace conformance {

struct Type {
  ncclDataType_t type;
  const char* name;
  std::size_t bytes;
  bool is_signed;
  int exponent_bits = 0;  ///< 0: an integer
  int mantissa_bits = 0;

  bool isFloat() const { return exponent_bits != 0; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

inline constexpr Type kTypes[] = {
    {ncclInt8, "int8", 1, true},
    {ncclUint8, "uint8", 1, false},
    {ncclInt32, "int32", 4, true},
    {ncclUint32, "uint32", 4, false},
    {ncclInt64, "int64", 8, true},
    {ncclUint64, "uint64", 8, false},
    {ncclFloat16, "float16", 2, true, 5, 10},
    {ncclFloat32, "float32", 4, true, 8, 23},
    {ncclFloat64, "float64", 8, true, 11, 52},
    {ncclBfloat16, "bfloat16", 2, true, 8, 7},
    {ncclFloat8e4m3, "float8e4m3", 1, true, 4, 3},
    {ncclFloat8e5m2, "float8e5m2", 1, true, 5, 2},
};
static_assert(sizeof(kTypes) / sizeof(kTypes[0]) == ncclNumTypes);

/// Writes `value`, which the type holds exactly: by sign, exponent and mantissa, or in two's complement.
inline void encode(const Type& type, std::byte* at, double value) {
  std::uint64_t code = 0;
  if (!type.isFloat()) {
    code = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  } else if (value != 0) {
    int exponent = 0;
    const double mantissa = std::frexp(std::fabs(value), &exponent) * 2 - 1;  // below 1
    const auto biased = static_cast<std::uint64_t>(std::int64_t{exponent} - 1 + type.bias());
    const auto fraction = static_cast<std::uint64_t>(std::ldexp(mantissa, type.mantissa_bits));
    code = biased << type.mantissa_bits | fraction;
    if (value < 0) code |= std::uint64_t{1} << (type.exponent_bits + type.mantissa_bits);
  }
  std::memcpy(at, &code, type.bytes);  // little endian
}

inline double decode(const Type& type, const std::byte* at) {
  std::uint64_t code = 0;
  std::memcpy(&code, at, type.bytes);
  const auto bits = static_cast<int>(8 * type.bytes);
  if (!type.isFloat()) {
    if (!type.is_signed) return static_cast<double>(code);
    const auto unused = 64 - bits;
    return static_cast<double>(static_cast<std::int64_t>(code << unused) >> unused);
  }
  const bool is_negative = (code >> (bits - 1) & 1) != 0;
  const std::uint64_t mantissa = code & ((std::uint64_t{1} << type.mantissa_bits) - 1);
  const auto exponent =
      static_cast<int>(code >> type.mantissa_bits & ((std::uint64_t{1} << type.exponent_bits) - 1));
  const double magnitude =
      exponent == 0 ? std::ldexp(static_cast<double>(mantissa), 1 - type.bias() - type.mantissa_bits)
                    : std::ldexp(1 + std::ldexp(static_cast<double>(mantissa), -type.mantissa_bits),
                                 exponent - type.bias());
  return is_negative ? -magnitude : magnitude;  // the greatest codes, infinities and NaNs, do not occur
}

}  // namespace conformance
