// cvt: between integers and floats of every width.
#pragma once

#include "tools/cuda_emulator/machine/device/floats.h"
#include "tools/cuda_emulator/machine/device/integers.h"

namespace tutti::emulator {

/// An integer as the double it is, or rounded to odd where it has more than 53 bits.
template <class T>
inline double integerOdd(T x) {
  const auto near = static_cast<double>(x);
  if constexpr (sizeof(T) < 8) return near;
  const s128 error = static_cast<s128>(x) - static_cast<s128>(near);
  return toOdd(near, static_cast<double>(error));
}

inline double roundToInteger(double x, u32 mode) {
  switch (mode & kRounding) {
    case kZero:
      return __builtin_trunc(x);
    case kDown:
      return __builtin_floor(x);
    case kUp:
      return __builtin_ceil(x);
    default:
      return __builtin_rint(x);
  }
}

/// Out of range clamps. NaN: 0, but the top bit where either side has 64 bits.
template <class To, class From>
inline To floatToInteger(double x, u32 mode) {
  if (x != x) {
    constexpr bool kWide = sizeof(To) == 8 || __is_same(From, f64);
    return kWide ? static_cast<To>(Unsigned<To>(1) << (kWidth<To> - 1)) : To(0);
  }
  x = roundToInteger(x, mode);
  constexpr To kMost =
      static_cast<To>(kIsSigned<To> ? (Unsigned<To>(1) << (kWidth<To> - 1)) - 1 : Unsigned<To>(-1));
  constexpr To kLeast = static_cast<To>(kIsSigned<To> ? Unsigned<To>(1) << (kWidth<To> - 1) : 0);
  if (x >= static_cast<double>(kMost)) return kMost;
  if (x <= static_cast<double>(kLeast)) return kLeast;
  return static_cast<To>(x);
}

template <class To, class From>
inline To saturate(From x) {
  constexpr To kMost =
      static_cast<To>(kIsSigned<To> ? (Unsigned<To>(1) << (kWidth<To> - 1)) - 1 : Unsigned<To>(-1));
  constexpr To kLeast = static_cast<To>(kIsSigned<To> ? Unsigned<To>(1) << (kWidth<To> - 1) : 0);
  const auto wide = static_cast<s128>(x);
  if (wide > static_cast<s128>(kMost)) return kMost;
  if (wide < static_cast<s128>(kLeast)) return kLeast;
  return static_cast<To>(x);
}

/// kToInteger: the rounding is to an integral value (.rni and its kind).
template <class To, class From, u32 kMode, bool kToInteger>
inline Bits<To> convert(Bits<From> from) {
  if constexpr (!kIsFloat<To> && !kIsFloat<From>) {
    if constexpr ((kMode & kSat) != 0) return saturate<To>(from);
    return static_cast<To>(from);
  } else if constexpr (!kIsFloat<To>) {
    return floatToInteger<To, From>(operand<From, kMode>(from), kMode);
  } else if constexpr (!kIsFloat<From>) {
    if constexpr (kDirected<To, kMode>)
      return directed<kMode>([&] { return static_cast<double>(held(from)); });
    if constexpr (__is_same(To, f64)) return bitCast<u64>(static_cast<double>(from));
    if constexpr (__is_same(To, f32) && kMode == kNearest) return bitCast<u32>(static_cast<float>(from));
    if constexpr (!__is_same(To, f64)) return narrow<To>(integerOdd(from), kMode);
  } else {
    const double x = operand<From, kMode>(from);
    if constexpr (kToInteger) return narrow<To>(roundToInteger(x, kMode), kMode & ~kRounding);
    return narrow<To>(x, kMode);
  }
}

/// Two floats into one register, the first operand into the high half.
template <class To, u32 kMode>
inline auto packFloats(u32 high, u32 low) {
  const u32 upper = narrow<To>(operand<f32, kMode>(high), kMode);
  return static_cast<Bits<Pair<To>>>((upper << Format<To>::kBits) |
                                     narrow<To>(operand<f32, kMode>(low), kMode));
}

template <class To, class From, u32 kMode>
inline auto convertPair(Bits<Pair<From>> from) {
  const u32 low = narrow<To>(widen<From>(static_cast<Bits<From>>(from)), kMode);
  const u32 high = narrow<To>(widen<From>(static_cast<Bits<From>>(from >> Format<From>::kBits)), kMode);
  return static_cast<Bits<Pair<To>>>((high << Format<To>::kBits) | low);
}

}  // namespace tutti::emulator
