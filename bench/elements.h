// The C++ types behind ncclDataType_t, and what the checks must know about each.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bench/minifloat.h"
#include "nccl.h"

namespace tutti::perf {

/// Calls body(T{}) for the C++ type behind `type`; throws std::invalid_argument when there is none.
template <class Body>
auto visitType(ncclDataType_t type, const Body& body) {
  switch (type) {
    case ncclInt8:
      return body(std::int8_t{});
    case ncclUint8:
      return body(std::uint8_t{});
    case ncclInt32:
      return body(std::int32_t{});
    case ncclUint32:
      return body(std::uint32_t{});
    case ncclInt64:
      return body(std::int64_t{});
    case ncclUint64:
      return body(std::uint64_t{});
    case ncclFloat16:
      return body(Half{});
    case ncclFloat32:
      return body(float{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(Bfloat16{});
    case ncclFloat8e4m3:
      return body(Float8E4m3{});
    case ncclFloat8e5m2:
      return body(Float8E5m2{});
    default:
      throw std::invalid_argument("no verification for data type " + std::to_string(type));
  }
}

/// What an element counts as: integers as themselves, all others as double, which holds their values.
template <class T>
using Number = std::conditional_t<std::is_integral_v<T>, T, double>;

template <class T>
Number<T> numberOf(T element) {
  if constexpr (std::is_class_v<T>) {
    return decode(T::kFormat, element.bits);
  } else {
    return element;
  }
}

/// The nearest element.
template <class T>
T elementOf(Number<T> number) {
  if constexpr (std::is_class_v<T>) {
    return {static_cast<decltype(T::bits)>(encode(T::kFormat, number))};
  } else {
    return static_cast<T>(number);
  }
}

/// Bits of the significand, the hidden one included: all integers up to 2^digits are exact. Floating-point
/// types only, as the next.
template <class T>
constexpr int significandDigits() {
  if constexpr (std::is_class_v<T>) {
    return T::kFormat.digits();
  } else {
    return std::numeric_limits<T>::digits;
  }
}

/// The powers of two from 2^-range to 2^range are normal numbers, and so are their 1.5-fold.
template <class T>
constexpr int exponentRange() {
  if constexpr (std::is_class_v<T>) {
    return -T::kFormat.smallestExponent();
  } else {
    return 1 - std::numeric_limits<T>::min_exponent;
  }
}

}  // namespace tutti::perf
