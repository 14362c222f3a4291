// The data types on the GPU: from memory to what they compute in and back, and the operations. The definition
// is kernels/host/combine.h; the bits are the host's.
//
// A group is what is packed and unpacked at once: the elements in 4 bytes, or one of 8. Packing rounds to
// nearest even and stores a NaN as the canonical one.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tutti {

/// Integers wrap, so they are computed without a sign; where the sign matters, T says so.
template <class T>
struct IntegerElement {
  using Compute = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  using Group = Compute;
  static constexpr std::uint32_t kBytes = sizeof(T);
  static constexpr std::uint32_t kPerGroup = sizeof(Group) / sizeof(T);
  static constexpr bool kIsInteger = true;

  __device__ static void unpack(Group group, Compute (&values)[kPerGroup]) {
#pragma unroll
    for (std::uint32_t i = 0; i < kPerGroup; ++i)
      values[i] = static_cast<Compute>(static_cast<T>(group >> (8 * kBytes * i)));
  }
  __device__ static Group pack(const Compute (&values)[kPerGroup]) {
    constexpr Group kMask = static_cast<Group>(~Group{0}) >> (8 * (sizeof(Group) - kBytes));
    Group group = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < kPerGroup; ++i) group |= (values[i] & kMask) << (8 * kBytes * i);
    return group;
  }
  __device__ static Compute min(Compute a, Compute b) {
    return static_cast<T>(a) < static_cast<T>(b) ? a : b;
  }
  __device__ static Compute max(Compute a, Compute b) {
    return static_cast<T>(a) > static_cast<T>(b) ? a : b;
  }
  __device__ static Compute scale(std::uint64_t bits) { return static_cast<Compute>(bits); }
  /// The scalar of a PreMulSum, as Scale has it.
  __device__ static std::uint64_t scaleOf(Group one) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<T>(one)));
  }
  __device__ static Compute divide(Compute sum, std::int32_t by) {
    using Wide = std::conditional_t<sizeof(T) < 4, std::int32_t, T>;
    return static_cast<Compute>(static_cast<Wide>(static_cast<T>(sum)) / static_cast<Wide>(by));
  }
};

/// float, and all that computes in it. Codec: how a group is stored.
template <class Codec>
struct FloatElement : Codec {
  using Compute = float;
  using Group = std::uint32_t;
  static constexpr std::uint32_t kPerGroup = 4 / Codec::kBytes;
  static constexpr bool kIsInteger = false;

  __device__ static Group pack(const float (&values)[kPerGroup]) {
    float stored[kPerGroup];
#pragma unroll
    for (std::uint32_t i = 0; i < kPerGroup; ++i)
      stored[i] = values[i] != values[i] ? __uint_as_float(0x7fffffffU) : values[i];
    return Codec::encode(stored);
  }
  // The instructions ignore a NaN where the other side is a number, and order -0 below +0.
  __device__ static float min(float a, float b) { return fminf(a, b); }
  __device__ static float max(float a, float b) { return fmaxf(a, b); }
  __device__ static float scale(std::uint64_t bits) {
    return static_cast<float>(__longlong_as_double(static_cast<long long>(bits)));
  }
  __device__ static std::uint64_t scaleOf(Group one) {
    float values[kPerGroup];
    Codec::unpack(one, values);
    return static_cast<std::uint64_t>(__double_as_longlong(static_cast<double>(values[0])));
  }
};

struct Float32Codec {
  static constexpr std::uint32_t kBytes = 4;

  __device__ static void unpack(std::uint32_t group, float (&values)[1]) {
    values[0] = __uint_as_float(group);
  }
  __device__ static std::uint32_t encode(const float (&values)[1]) { return __float_as_uint(values[0]); }
};

struct Float16Codec {
  static constexpr std::uint32_t kBytes = 2;

  __device__ static void unpack(std::uint32_t group, float (&values)[2]) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(values[0]), "=f"(values[1])
        : "r"(group));
  }
  __device__ static std::uint32_t encode(const float (&values)[2]) {
    std::uint32_t group;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(group) : "f"(values[0]), "f"(values[1]));
    return group;
  }
};

struct BFloat16Codec {
  static constexpr std::uint32_t kBytes = 2;

  __device__ static void unpack(std::uint32_t group, float (&values)[2]) {
    values[0] = __uint_as_float(group << 16);
    values[1] = __uint_as_float(group & 0xffff0000U);
  }
  __device__ static std::uint32_t encode(const float (&values)[2]) {
    std::uint32_t group;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(group) : "f"(values[0]), "f"(values[1]));
    return group;
  }
};

struct Float64Element {
  using Compute = double;
  using Group = std::uint64_t;
  static constexpr std::uint32_t kBytes = 8;
  static constexpr std::uint32_t kPerGroup = 1;
  static constexpr bool kIsInteger = false;

  __device__ static void unpack(Group group, double (&values)[1]) {
    values[0] = __longlong_as_double(static_cast<long long>(group));
  }
  __device__ static Group pack(const double (&values)[1]) {
    const bool is_nan = values[0] != values[0];
    return is_nan ? 0x7fffffffffffffffULL : static_cast<Group>(__double_as_longlong(values[0]));
  }
  __device__ static double min(double a, double b) { return fmin(a, b); }
  __device__ static double max(double a, double b) { return fmax(a, b); }
  __device__ static double scale(std::uint64_t bits) {
    return __longlong_as_double(static_cast<long long>(bits));
  }
  __device__ static std::uint64_t scaleOf(Group one) { return one; }
};

using Int8 = IntegerElement<std::int8_t>;
using UInt8 = IntegerElement<std::uint8_t>;
using Int32 = IntegerElement<std::int32_t>;
using UInt32 = IntegerElement<std::uint32_t>;
using Int64 = IntegerElement<std::int64_t>;
using UInt64 = IntegerElement<std::uint64_t>;
using Float16 = FloatElement<Float16Codec>;
using Float32 = FloatElement<Float32Codec>;
using Float64 = Float64Element;
using BFloat16 = FloatElement<BFloat16Codec>;

}  // namespace tutti
