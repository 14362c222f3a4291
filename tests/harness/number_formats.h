// The narrow floating-point formats from their definitions: a sign, exponent and mantissa field each, in
// double arithmetic. Independent of the code under test, and slow.
//
// Sources: IEEE 754 for the layout of float16, which bfloat16 shares with other widths; the OCP 8-bit
// Floating Point Specification for e4m3 (no infinity; all ones are NaN) and e5m2. Storing into float8
// saturates, infinity too, as CUDA's conversions with __NV_SATFINITE do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/core/types.h"

namespace tutti::test {

struct NumberFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity = true;
  bool saturates = false;

  int width() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint64_t sign() const { return std::uint64_t{1} << (width() - 1); }
  /// Sign clear, all other bits set.
  std::uint64_t canonicalNaN() const { return sign() - 1; }
  std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  std::uint64_t largestFinite() const { return (has_infinity ? infinity() : canonicalNaN()) - 1; }
};

inline NumberFormat formatOf(DataType type) {
  switch (type) {
    case DataType::float16:
      return {5, 10};
    case DataType::bfloat16:
      return {8, 7};
    case DataType::float8e4m3:
      return {4, 3, false, true};
    case DataType::float8e5m2:
      return {5, 2, true, true};
    case DataType::float32:
      return {8, 23};
    default:
      return {11, 52};
  }
}

inline bool isNarrowFloat(DataType type) {
  return isFloatingPoint(type) && type != DataType::float32 && type != DataType::float64;
}

/// All values of a narrow format by code, and the search for the nearest.
class NarrowNumbers {
 public:
  explicit NarrowNumbers(DataType type) : format_(formatOf(type)) {
    for (std::uint64_t code = 0; code < 2 * format_.sign(); ++code) values_.push_back(fieldsValue(code));
  }

  const NumberFormat& format() const { return format_; }
  double value(std::uint64_t code) const { return values_[code]; }

  /// The code of the nearest number, of two equally near ones the even one; exact for whatever a float can
  /// be.
  std::uint64_t nearest(double wanted) const {
    if (std::isnan(wanted)) return format_.canonicalNaN();
    const std::uint64_t sign = std::signbit(wanted) ? format_.sign() : 0;
    const double magnitude = std::abs(wanted);
    const std::uint64_t largest = format_.largestFinite();
    if (magnitude > values_[largest]) {
      if (format_.saturates) return sign | largest;
      // What is a half unit or more beyond the largest number rounds to what would be the next one.
      const double half_unit = (values_[largest] - values_[largest - 1]) / 2;
      return sign | (magnitude < values_[largest] + half_unit ? largest : format_.infinity());
    }
    // Positive codes are in the order of their values.
    const auto above =
        std::lower_bound(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(largest), magnitude);
    const auto high = static_cast<std::uint64_t>(above - values_.begin());
    if (high == 0 || values_[high] == magnitude) return sign | high;
    const std::uint64_t low = high - 1;
    const double middle = (values_[low] + values_[high]) / 2;  // exact: one more bit than the format has
    if (magnitude != middle) return sign | (magnitude < middle ? low : high);
    return sign | (low % 2 == 0 ? low : high);
  }

 private:
  double fieldsValue(std::uint64_t code) const {
    const double sign = (code & format_.sign()) != 0 ? -1 : 1;
    const std::uint64_t magnitude = code & format_.canonicalNaN();
    if (magnitude > format_.largestFinite()) {
      return format_.has_infinity && magnitude == format_.infinity() ? sign * HUGE_VAL : std::nan("");
    }
    const std::uint64_t mantissa = magnitude & ((std::uint64_t{1} << format_.mantissa_bits) - 1);
    const int exponent = static_cast<int>(magnitude >> format_.mantissa_bits);
    const double fraction = std::ldexp(static_cast<double>(mantissa), -format_.mantissa_bits);
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - format_.bias());
    return sign * std::ldexp(1 + fraction, exponent - format_.bias());
  }

  NumberFormat format_;
  std::vector<double> values_;
};

inline const NarrowNumbers& narrowNumbers(DataType type) {
  static const NarrowNumbers kFloat16(DataType::float16);
  static const NarrowNumbers kBFloat16(DataType::bfloat16);
  static const NarrowNumbers kE4M3(DataType::float8e4m3);
  static const NarrowNumbers kE5M2(DataType::float8e5m2);
  return type == DataType::float16      ? kFloat16
         : type == DataType::bfloat16   ? kBFloat16
         : type == DataType::float8e4m3 ? kE4M3
                                        : kE5M2;
}

}  // namespace tutti::test
