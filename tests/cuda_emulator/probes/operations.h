// Operations that both compilers compile: nvcc for the device, g++ for the host, which is the oracle. What is
// an intrinsic on the device is spelled out for the host.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define TUTTI_BOTH __host__ __device__ inline
#else
#define TUTTI_BOTH inline
#endif

namespace probe {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

constexpr int kIntegerOperations = 46;

#if !defined(__CUDA_ARCH__)
inline u32 hostPermute(u32 a, u32 b, u32 selector) {
  const u64 both = (u64{b} << 32) | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<u32>((both >> (8 * ((selector >> (4 * i)) & 7))) & 0xff) << (8 * i);
  return result;
}
inline u32 hostReverse(u32 a) {
  u32 result = 0;
  for (int i = 0; i < 32; ++i) result |= ((a >> i) & 1u) << (31 - i);
  return result;
}
#endif

/// 32-bit operations and comparisons.
TUTTI_BOTH u64 narrowOperation(int which, u32 a, u32 b, u32 c) {
  const s32 sa = static_cast<s32>(a);
  const s32 sb = static_cast<s32>(b);
  switch (which) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b + c;
    case 3:
      return b == 0 ? 1 : a / b;
    case 4:
      return b == 0 ? 1 : a % b;
    case 5:
      return sb == 0 || sb == -1 ? 1 : static_cast<u64>(s64{sa / sb});
    case 6:
      return sb == 0 || sb == -1 ? 1 : static_cast<u64>(s64{sa % sb});
    case 7:
      return (u64{a} * b) + c;
    case 8:
      return static_cast<u64>(s64{sa} * sb + static_cast<s64>(c));
    case 9:
      return (a & b) | (~a & c);
    case 10:
      return (a & b) ^ (b & c) ^ (a & c);
    case 11:
      return a << (b & 31);
    case 12:
      return a >> (b & 31);
    case 13:
      return static_cast<u64>(s64{sa >> (b & 31)});
    case 14:
      return a < b ? a : b;
    case 15:
      return static_cast<u64>(s64{sa < sb ? sb : sa});
    case 16:
      return static_cast<u64>(s64{static_cast<std::int8_t>(a)});
    case 17:
      return static_cast<u64>(s64{static_cast<std::int16_t>(b)});
    case 18:
      return static_cast<std::uint16_t>(static_cast<std::uint16_t>(a) * static_cast<std::uint16_t>(b));
    case 19:
      return (a >> 5) & 0x7f;
    case 20:
      return (static_cast<u64>(sa < sb) << 3) | (static_cast<u64>(a < b) << 2) | (u64{a == c} << 1) |
             (a >= c);
    case 21:
      return static_cast<u64>(s64{sa < 0 ? -(sa + 1) : sa});
    default:
      return 0;
  }
}

/// Intrinsics of 32 bits.
TUTTI_BOTH u64 intrinsicOperation(int which, u32 a, u32 b, u32 c) {
#if defined(__CUDA_ARCH__)
  switch (which) {
    case 0:
      return __popc(a);
    case 1:
      return __clz(a);
    case 2:
      return __ffs(a);
    case 3:
      return __brev(a);
    case 4:
      return __byte_perm(a, b, c & 0x7777);
    case 5:
      return __umulhi(a, b);
    case 6:
      return static_cast<u64>(s64{__mulhi(static_cast<s32>(a), static_cast<s32>(b))});
    case 7:
      return __funnelshift_l(a, b, c);
    case 8:
      return __funnelshift_r(a, b, c);
    case 9:
      return __sad(static_cast<s32>(a), static_cast<s32>(b), c);
    case 10:
      return __dp4a(a, b, c);
    case 11:
      return static_cast<u32>(__dp4a(static_cast<s32>(a), static_cast<s32>(b), static_cast<s32>(c)));
    default:
      return 0;
  }
#else
  const u32 shift = c & 31;
  u32 dot = c;
  u32 signed_dot = c;
  for (int i = 0; i < 32; i += 8) {
    dot += ((a >> i) & 0xff) * ((b >> i) & 0xff);
    signed_dot +=
        static_cast<u32>(int{static_cast<std::int8_t>(a >> i)} * int{static_cast<std::int8_t>(b >> i)});
  }
  const s64 difference = s64{static_cast<s32>(a)} - static_cast<s32>(b);
  switch (which) {
    case 0:
      return static_cast<u64>(__builtin_popcount(a));
    case 1:
      return a == 0 ? 32 : static_cast<u64>(__builtin_clz(a));
    case 2:
      return static_cast<u64>(__builtin_ffs(static_cast<s32>(a)));
    case 3:
      return hostReverse(a);
    case 4:
      return hostPermute(a, b, c & 0x7777);
    case 5:
      return (u64{a} * b) >> 32;
    case 6:
      return static_cast<u64>((s64{static_cast<s32>(a)} * static_cast<s32>(b)) >> 32);
    case 7:
      return shift == 0 ? b : (b << shift) | (a >> (32 - shift));
    case 8:
      return shift == 0 ? a : (a >> shift) | (b << (32 - shift));
    case 9:
      return static_cast<u32>(c + static_cast<u64>(difference < 0 ? -difference : difference));
    case 10:
      return dot;
    case 11:
      return signed_dot;
    default:
      return 0;
  }
#endif
}

/// 64 and 128 bits.
TUTTI_BOTH u64 wideOperation(int which, u64 a, u64 b, u64 c) {
  const s64 sa = static_cast<s64>(a);
  const s64 sb = static_cast<s64>(b);
  switch (which) {
    case 0:
      return a * b + c;
    case 1:
      return b == 0 ? 1 : a / b;
    case 2:
      return b == 0 ? 1 : a % b;
    case 3:
      return sb == 0 || sb == -1 ? 1 : static_cast<u64>(sa / sb);
    case 4:
      return a << (b & 63);
    case 5:
      return static_cast<u64>(sa >> (b & 63));
    case 6:
      return sa < sb ? a : b;
    case 7:
      return a < b ? a : b;
    case 8:
      return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64);
    case 9:
      return static_cast<u64>((((static_cast<unsigned __int128>(a) << 64) | b) +
                               ((static_cast<unsigned __int128>(c) << 64) | a)) >>
                              64);
    case 10:
      return static_cast<u64>((((static_cast<unsigned __int128>(a) << 64) | b) -
                               ((static_cast<unsigned __int128>(c) << 64) | a)) >>
                              64);
    case 11:
      return (a ^ b) & ~c;
    default:
      return 0;
  }
}

TUTTI_BOTH u64 integerOperation(int which, u64 a, u64 b, u64 c) {
  if (which < 22)
    return narrowOperation(which, static_cast<u32>(a), static_cast<u32>(b), static_cast<u32>(c));
  if (which < 34)
    return intrinsicOperation(which - 22, static_cast<u32>(a), static_cast<u32>(b), static_cast<u32>(c));
  return wideOperation(which - 34, a, b, c);
}

constexpr int kSingleOperations = 16;

/// Floats rounded to the nearest, and what converts to them and from them.
TUTTI_BOTH float singleOperation(int which, float a, float b, float c) {
  switch (which) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return a / b;
    case 4:
      return std::fma(a, b, c);
    case 5:
      return std::sqrt(a);
    case 6:
      return std::fmin(a, b);
    case 7:
      return std::fmax(a, b);
    case 8:
      return std::fabs(a) - -b;
    case 9:
      return std::trunc(a);
    case 10:
      return std::floor(a) + std::ceil(b);
    case 11:
      return std::rint(a);
    case 12:
      return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
    case 13:
      return a < b ? 1.0f : (a == b ? 2.0f : (a > b ? 3.0f : 4.0f));
    case 14:
      return !(a >= b) ? 1.0f : (a != c ? 2.0f : 3.0f);
    case 15:
      return std::copysign(a, b);
    default:
      return 0;
  }
}

constexpr int kDoubleOperations = 8;

TUTTI_BOTH double doubleOperation(int which, double a, double b, double c) {
  switch (which) {
    case 0:
      return a + b;
    case 1:
      return a * b - c;
    case 2:
      return a / b;
    case 3:
      return std::fma(a, b, c);
    case 4:
      return std::sqrt(a);
    case 5:
      return std::fmin(a, b) + std::fmax(b, c);
    case 6:
      return std::floor(a) - std::trunc(b);
    case 7:
      return a < b ? -a : std::fabs(c);
    default:
      return 0;
  }
}

}  // namespace probe
