// float8 e4m3 and e5m2 on the GPU. Storing saturates to the largest finite value, infinity too. GPUs since
// compute capability 8.9 have instructions for it; for older ones it is done in float, as on the host.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace tutti {

/// Rounds to kMantissa bits of mantissa, and to multiples of the smallest subnormal below the smallest normal
/// number 2^kSmallestExponent; saturates at `largest`. NaN stays. The addition of a number whose last bit is
/// worth one unit of the result does the rounding.
template <int kMantissa, int kSmallestExponent>
__device__ inline float roundToFloat8(float value, float largest) {
  const std::uint32_t bits = __float_as_uint(value);
  const float magnitude = __uint_as_float(bits & 0x7fffffffU);
  const float clamped = largest < magnitude ? largest : magnitude;
  const std::uint32_t exponent = __float_as_uint(clamped) & 0x7f800000U;
  constexpr std::uint32_t kSmallest = static_cast<std::uint32_t>(kSmallestExponent + 127) << 23;
  const float unit =
      __uint_as_float((exponent > kSmallest ? exponent : kSmallest) + ((23U - kMantissa) << 23));
  const float rounded = (clamped + unit) - unit;
  return __uint_as_float(__float_as_uint(rounded) | (bits & 0x80000000U));
}

__device__ inline float float16ToFloat(std::uint32_t code) {
  float value;
  asm("{ .reg .b16 low; cvt.u16.u32 low, %1; cvt.f32.f16 %0, low; }" : "=f"(value) : "r"(code));
  return value;
}

__device__ inline std::uint32_t floatToFloat16(float value) {
  std::uint32_t code;
  asm("{ .reg .b16 low; cvt.rn.f16.f32 low, %1; cvt.u32.u16 %0, low; }" : "=r"(code) : "f"(value));
  return code;
}

/// The upper half of a float16.
struct Float8E5M2Codec {
  static constexpr std::uint32_t kBytes = 1;

  __device__ static void unpack(std::uint32_t group, float (&values)[4]) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) values[i] = float16ToFloat((group >> (8 * i) & 0xff) << 8);
  }

  __device__ static std::uint32_t encode(const float (&values)[4]) {
#if __CUDA_ARCH__ >= 890
    std::uint32_t group;
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e5m2x2.f32 low, %2, %1;"
        " cvt.rn.satfinite.e5m2x2.f32 high, %4, %3; mov.b32 %0, {low, high}; }"
        : "=r"(group)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
    return group;
#else
    std::uint32_t group = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
      group |= (floatToFloat16(roundToFloat8<2, -14>(values[i], 57344.0F)) >> 8) << (8 * i);
    return group;
#endif
  }
};

/// A float16 that is 2^8 times smaller, without its upper exponent bit and lower mantissa bits. No infinity;
/// the code of what would be 480 is NaN.
struct Float8E4M3Codec {
  static constexpr std::uint32_t kBytes = 1;

  __device__ static void unpack(std::uint32_t group, float (&values)[4]) {
#if __CUDA_ARCH__ >= 890
    asm("{ .reg .b16 low, high, h0, h1, h2, h3; .reg .b32 p0, p1; mov.b32 {low, high}, %4;"
        " cvt.rn.f16x2.e4m3x2 p0, low; cvt.rn.f16x2.e4m3x2 p1, high;"
        " mov.b32 {h0, h1}, p0; mov.b32 {h2, h3}, p1;"
        " cvt.f32.f16 %0, h0; cvt.f32.f16 %1, h1; cvt.f32.f16 %2, h2; cvt.f32.f16 %3, h3; }"
        : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
        : "r"(group));
#else
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t code = group >> (8 * i) & 0xff;
      const std::uint32_t number = (code & 0x7f) == 0x7f ? 0x7fffU : (code & 0x80) << 8 | (code & 0x7f) << 7;
      values[i] = float16ToFloat(number) * 256.0F;
    }
#endif
  }

  __device__ static std::uint32_t encode(const float (&values)[4]) {
#if __CUDA_ARCH__ >= 890
    std::uint32_t group;
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;"
        " cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; mov.b32 %0, {low, high}; }"
        : "=r"(group)
        : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
    return group;
#else
    std::uint32_t group = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t code = floatToFloat16(roundToFloat8<3, -6>(values[i], 448.0F) * 0x1p-8F);
      group |= ((code >> 8 & 0x80) | (code >> 7 & 0x7f)) << (8 * i);
    }
    return group;
#endif
  }
};

using Float8E4M3 = FloatElement<Float8E4M3Codec>;
using Float8E5M2 = FloatElement<Float8E5M2Codec>;

}  // namespace tutti
