// The types of PTX, as translated code names them. A register is an unsigned integer of its width whatever it
// holds; a type says how an operation reads it.
#pragma once

#include "tools/cuda_emulator/machine/device/abi.h"

namespace tutti::emulator {

__extension__ using u128 = unsigned __int128;
__extension__ using s128 = __int128;

struct f16 {};
struct bf16 {};
struct f32 {};
struct f64 {};
/// Two of a kind in one register, the first in the low half.
template <class Half>
struct Pair {};
using f16x2 = Pair<f16>;
using bf16x2 = Pair<bf16>;
/// Floats of 8 bits: e4m3 has no infinity.
struct e4m3 {};
struct e5m2 {};
using e4m3x2 = Pair<e4m3>;
using e5m2x2 = Pair<e5m2>;

template <class T>
struct BitsOf {
  using Type = T;
};
template <>
struct BitsOf<e4m3> {
  using Type = u8;
};
template <>
struct BitsOf<e5m2> {
  using Type = u8;
};
template <>
struct BitsOf<f16> {
  using Type = u16;
};
template <>
struct BitsOf<bf16> {
  using Type = u16;
};
template <>
struct BitsOf<f32> {
  using Type = u32;
};
template <>
struct BitsOf<f64> {
  using Type = u64;
};
template <>
struct BitsOf<f16x2> {
  using Type = u32;
};
template <>
struct BitsOf<bf16x2> {
  using Type = u32;
};
template <>
struct BitsOf<e4m3x2> {
  using Type = u16;
};
template <>
struct BitsOf<e5m2x2> {
  using Type = u16;
};
/// What a value of type T is held in.
template <class T>
using Bits = typename BitsOf<T>::Type;

template <class T>
constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<f16> = true;
template <>
inline constexpr bool kIsFloat<bf16> = true;
template <>
inline constexpr bool kIsFloat<f32> = true;
template <>
inline constexpr bool kIsFloat<f64> = true;

/// How an operation rounds and clamps: modifiers of the instruction, or-ed.
enum Mode : u32 {
  kNearest = 0,
  kZero = 1,
  kDown = 2,
  kUp = 3,
  kNearestAway = 4,
  kRounding = 7,
  kFtz = 8,
  kSat = 16,
  kRelu = 32,
  kNan = 64,
  kSatFinite = 128,
};

template <class To, class From>
[[gnu::always_inline]] inline To bitCast(From from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace tutti::emulator
