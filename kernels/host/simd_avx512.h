// The steps of combine that the compiler's vectors do not have, for AVX-512 (F, BW, DQ, VL): 64 bytes at a
// time.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace tutti {
namespace {
inline constexpr std::size_t kVectorBytes = 64;
}
}  // namespace tutti

#include "kernels/host/simd_vector.h"

namespace tutti {
namespace {

/// Reads a vector's worth of 8- or 16-bit codes into lanes of 32 bits; storeCodes writes their low bits.
template <class T>
[[gnu::always_inline]] inline U32 loadCodes(const std::byte* from) {
  if constexpr (sizeof(T) == 2) {
    return bitsAs<U32>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
  } else {
    return bitsAs<U32>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
}

template <class T>
[[gnu::always_inline]] inline void storeCodes(std::byte* to, U32 codes) {
  if constexpr (sizeof(T) == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(bitsAs<__m512i>(codes)));
  } else {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(bitsAs<__m512i>(codes)));
  }
}

[[gnu::always_inline]] inline F32 loadFloat16(const std::byte* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// The hardware's conversion does not look at the flags that flush denormals.
[[gnu::always_inline]] inline void storeFloat16(std::byte* to, F32 values) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace tutti
