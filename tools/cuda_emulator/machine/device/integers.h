// Integer instructions of PTX. Shift counts beyond the width clamp, as PTX has it, and signed overflow wraps.
#pragma once

#include "tools/cuda_emulator/machine/device/types.h"

namespace tutti::emulator {

template <class T>
constexpr u32 kWidth = sizeof(T) * 8;
template <class T>
constexpr bool kIsSigned = T(-1) < T(0);

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<s8> {
  using Type = u8;
};
template <>
struct UnsignedOf<s16> {
  using Type = u16;
};
template <>
struct UnsignedOf<s32> {
  using Type = u32;
};
template <>
struct UnsignedOf<s64> {
  using Type = u64;
};
template <>
struct UnsignedOf<u8> {
  using Type = u8;
};
template <>
struct UnsignedOf<u16> {
  using Type = u16;
};
template <>
struct UnsignedOf<u32> {
  using Type = u32;
};
template <>
struct UnsignedOf<u64> {
  using Type = u64;
};
template <class T>
using Unsigned = typename UnsignedOf<T>::Type;

/// A type of twice the width.
template <class T>
struct DoubleOf;
template <>
struct DoubleOf<u16> {
  using Type = u32;
};
template <>
struct DoubleOf<s16> {
  using Type = s32;
};
template <>
struct DoubleOf<u32> {
  using Type = u64;
};
template <>
struct DoubleOf<s32> {
  using Type = s64;
};
template <>
struct DoubleOf<u64> {
  using Type = u128;
};
template <>
struct DoubleOf<s64> {
  using Type = s128;
};
template <class T>
using Double = typename DoubleOf<T>::Type;

template <class T>
[[gnu::always_inline]] inline Double<T> mulWide(T a, T b) {
  return static_cast<Double<T>>(a) * static_cast<Double<T>>(b);
}

template <class T>
[[gnu::always_inline]] inline T mulHigh(T a, T b) {
  return static_cast<T>(mulWide(a, b) >> kWidth<T>);
}

/// s32 only: the sum clamps.
inline s32 addSaturating(s32 a, s32 b) {
  s32 sum;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT32_MIN : INT32_MAX) : sum;
}

inline s32 subSaturating(s32 a, s32 b) {
  s32 difference;
  return __builtin_sub_overflow(a, b, &difference) ? (a < 0 ? INT32_MIN : INT32_MAX) : difference;
}

/// Division by zero gives all ones, as the hardware's sequence does.
template <class T>
inline T divide(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (kIsSigned<T>) {
    if (b == -1) return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a));
  }
  return static_cast<T>(a / b);
}

template <class T>
inline T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (kIsSigned<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

template <class T>
[[gnu::always_inline]] inline T minInteger(T a, T b) {
  return a < b ? a : b;
}

template <class T>
[[gnu::always_inline]] inline T maxInteger(T a, T b) {
  return a < b ? b : a;
}

template <class T>
[[gnu::always_inline]] inline T absInteger(T a) {
  return a < 0 ? static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a)) : a;
}

template <class T>
[[gnu::always_inline]] inline T shiftLeft(T a, u32 count) {
  return count >= kWidth<T> ? T(0) : static_cast<T>(a << count);
}

template <class T>
[[gnu::always_inline]] inline T shiftRight(T a, u32 count) {
  if (count >= kWidth<T>) count = kIsSigned<T> ? kWidth<T> - 1 : kWidth<T>;
  return count == kWidth<T> ? T(0) : static_cast<T>(a >> count);
}

/// shf: the 64 bits b:a; `wrap` takes the count modulo 32, else it clamps at 32.
inline u32 funnelLeft(u32 a, u32 b, u32 count, bool wrap) {
  count = wrap ? count & 31 : (count > 32 ? 32 : count);
  const u64 both = (static_cast<u64>(b) << 32) | a;
  return count == 32 ? a : static_cast<u32>((both << count) >> 32);
}

inline u32 funnelRight(u32 a, u32 b, u32 count, bool wrap) {
  count = wrap ? count & 31 : (count > 32 ? 32 : count);
  const u64 both = (static_cast<u64>(b) << 32) | a;
  return static_cast<u32>(both >> count);
}

template <u32 kTable, class T>
[[gnu::always_inline]] inline T lop3(T a, T b, T c) {
  T result = 0;
  if constexpr (kTable & 1) result |= ~a & ~b & ~c;
  if constexpr (kTable & 2) result |= ~a & ~b & c;
  if constexpr (kTable & 4) result |= ~a & b & ~c;
  if constexpr (kTable & 8) result |= ~a & b & c;
  if constexpr (kTable & 16) result |= a & ~b & ~c;
  if constexpr (kTable & 32) result |= a & ~b & c;
  if constexpr (kTable & 64) result |= a & b & ~c;
  if constexpr (kTable & 128) result |= a & b & c;
  return result;
}

/// Byte `selector & 7` of b:a; with bit 3 set, that byte's sign in all bits.
inline u32 selectByte(u64 both, u32 selector) {
  const u32 byte = static_cast<u32>(both >> (8 * (selector & 7))) & 0xff;
  return (selector & 8) ? ((byte & 0x80) ? 0xff : 0) : byte;
}

inline u32 permute(u32 a, u32 b, u32 selector) {
  const u64 both = (static_cast<u64>(b) << 32) | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= selectByte(both, selector >> (4 * i)) << (8 * i);
  return result;
}

/// The selectors of prmt's named modes for each value of c & 3.
enum class Permute : u32 { Forward4, Backward4, Replicate8, EdgeLeft, EdgeRight, Replicate16 };

inline u32 permuteBy(Permute mode, u32 a, u32 b, u32 c) {
  static constexpr u16 kSelectors[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
      {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return permute(a, b, kSelectors[static_cast<u32>(mode)][c & 3]);
}

template <class T>
inline T extractBits(T a, u32 position, u32 length) {
  position &= 0xff;
  length &= 0xff;
  using U = Unsigned<T>;
  const u32 last = position + length - 1 < kWidth<T> - 1 ? position + length - 1 : kWidth<T> - 1;
  const bool sign = kIsSigned<T> && length != 0 && ((static_cast<U>(a) >> last) & 1) != 0;
  U result = position >= kWidth<T> ? 0 : static_cast<U>(static_cast<U>(a) >> position);
  const u32 kept =
      position >= kWidth<T> ? 0 : (length < kWidth<T> - position ? length : kWidth<T> - position);
  const U mask = kept >= kWidth<T> ? ~U(0) : static_cast<U>((U(1) << kept) - 1);
  result &= mask;
  return static_cast<T>(sign ? result | ~mask : result);
}

template <class T>
inline T insertBits(T a, T b, u32 position, u32 length) {
  position &= 0xff;
  length &= 0xff;
  if (position >= kWidth<T> || length == 0) return b;
  const T ones = length >= kWidth<T> ? ~T(0) : static_cast<T>((T(1) << length) - 1);
  const T mask = static_cast<T>(ones << position);
  return static_cast<T>((b & ~mask) | ((a << position) & mask));
}

template <class T>
inline u32 leadingZeros(T a) {
  if (a == 0) return kWidth<T>;
  return sizeof(T) == 8 ? static_cast<u32>(__builtin_clzll(a))
                        : static_cast<u32>(__builtin_clz(static_cast<u32>(a)));
}

template <class T>
inline u32 population(T a) {
  return static_cast<u32>(__builtin_popcountll(a));
}

/// The position of the highest bit that differs from the sign, or all ones; `shift`: as a shift amount.
template <class T>
inline u32 findBit(T a, bool shift) {
  using U = Unsigned<T>;
  const U magnitude = a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
  if (magnitude == 0) return 0xffffffff;
  const u32 position = kWidth<T> - 1 - leadingZeros(magnitude);
  return shift ? kWidth<T> - 1 - position : position;
}

template <class T>
inline T reverseBits(T a) {
  T result = 0;
  for (u32 i = 0; i < kWidth<T>; ++i)
    result = static_cast<T>(result | (((a >> i) & 1) << (kWidth<T> - 1 - i)));
  return result;
}

template <class T>
inline T sumOfDifferences(T a, T b, T c) {
  using U = Unsigned<T>;
  const U difference = a < b ? static_cast<U>(static_cast<U>(b) - static_cast<U>(a))
                             : static_cast<U>(static_cast<U>(a) - static_cast<U>(b));
  return static_cast<T>(static_cast<U>(c) + difference);
}

/// dp4a: c plus the products of four bytes each.
template <class A, class B>
inline u32 dotBytes(u32 a, u32 b, u32 c) {
  for (u32 i = 0; i < 32; i += 8) {
    c +=
        static_cast<u32>(static_cast<s32>(static_cast<A>(a >> i)) * static_cast<s32>(static_cast<B>(b >> i)));
  }
  return c;
}

/// dp2a: c plus the products of a's halves and two bytes of b, the first of which is at `shift`.
template <class A, class B>
inline u32 dotHalves(u32 a, u32 b, u32 c, u32 shift) {
  const auto product = [&](u32 half, u32 byte) {
    return static_cast<u32>(static_cast<s32>(static_cast<A>(a >> half)) *
                            static_cast<s32>(static_cast<B>(b >> byte)));
  };
  return c + product(0, shift) + product(16, shift + 8);
}

/// vabsdiff2, vabsdiff4: |a - b| in each lane of T; with `sum`, c plus all of them.
template <class T>
inline u32 laneDifferences(u32 a, u32 b, u32 c, bool sum) {
  u32 lanes = 0;
  for (u32 shift = 0; shift < 32; shift += kWidth<T>) {
    const s32 difference =
        static_cast<s32>(static_cast<T>(a >> shift)) - static_cast<s32>(static_cast<T>(b >> shift));
    const u32 magnitude = static_cast<u32>(difference < 0 ? -difference : difference);
    lanes |= static_cast<u32>(static_cast<Unsigned<T>>(magnitude)) << shift;
    c += magnitude;
  }
  return sum ? c : lanes;
}

/// fns: the place of the |offset|-th one of `mask`, counted from `base` upwards or downwards; all ones where
/// there is none. Offset 0: base, where it is a one.
inline u32 findNthSet(u32 mask, u32 base, s32 offset) {
  if (offset == 0) return base < 32 && ((mask >> base) & 1) ? base : ~0u;
  const s32 step = offset > 0 ? 1 : -1;
  u32 left = static_cast<u32>(offset > 0 ? offset : -offset);
  for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += step) {
    if (((mask >> at) & 1) && --left == 0) return static_cast<u32>(at);
  }
  return ~0u;
}

/// add.cc and what follows it: `carry` is the condition code.
template <class T>
inline T addCarry(T a, T b, bool in, bool& carry, bool write) {
  T sum;
  const bool first = __builtin_add_overflow(a, b, &sum);
  const bool second = __builtin_add_overflow(sum, static_cast<T>(in), &sum);
  if (write) carry = first || second;
  return sum;
}

/// `carry` is the borrow here.
template <class T>
inline T subBorrow(T a, T b, bool in, bool& carry, bool write) {
  T difference;
  const bool first = __builtin_sub_overflow(a, b, &difference);
  const bool second = __builtin_sub_overflow(difference, static_cast<T>(in), &difference);
  if (write) carry = first || second;
  return difference;
}

}  // namespace tutti::emulator
