// The steps of combine that the compiler's vectors do not have, for any target: 16 bytes at a time.
#pragma once

#include <cstddef>

namespace tutti {
namespace {
inline constexpr std::size_t kVectorBytes = 16;
}
}  // namespace tutti

#include "kernels/host/narrow_floats.h"

namespace tutti {
namespace {

template <class T>
struct CodesOf {
  typedef T Type __attribute__((vector_size(kFloatLanes * sizeof(T))));  // NOLINT(modernize-use-using)
};

/// Reads a vector's worth of 8- or 16-bit codes into lanes of 32 bits; storeCodes writes their low bits.
template <class T>
[[gnu::always_inline]] inline U32 loadCodes(const std::byte* from) {
  return __builtin_convertvector(loadVector<typename CodesOf<T>::Type>(from), U32);
}

template <class T>
[[gnu::always_inline]] inline void storeCodes(std::byte* to, U32 codes) {
  storeVector(to, __builtin_convertvector(codes, typename CodesOf<T>::Type));
}

[[gnu::always_inline]] inline F32 loadFloat16(const std::byte* from) {
  return Float16Code::widen(loadCodes<std::uint16_t>(from));
}

[[gnu::always_inline]] inline void storeFloat16(std::byte* to, F32 values) {
  storeCodes<std::uint16_t>(to, Float16Code::narrow(values));
}

}  // namespace
}  // namespace tutti
