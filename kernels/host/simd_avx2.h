// The steps of combine that the compiler's vectors do not have, for AVX2 with F16C: 32 bytes at a time.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace tutti {
namespace {
inline constexpr std::size_t kVectorBytes = 32;
}
}  // namespace tutti

#include "kernels/host/simd_vector.h"

namespace tutti {
namespace {

/// Reads a vector's worth of 8- or 16-bit codes into lanes of 32 bits; storeCodes writes their low bits, of
/// codes that have no others.
template <class T>
[[gnu::always_inline]] inline U32 loadCodes(const std::byte* from) {
  if constexpr (sizeof(T) == 2) {
    return bitsAs<U32>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  } else {
    return bitsAs<U32>(_mm256_cvtepu8_epi32(_mm_loadu_si64(from)));
  }
}

template <class T>
[[gnu::always_inline]] inline void storeCodes(std::byte* to, U32 codes) {
  const auto lanes = bitsAs<__m256i>(codes);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  if constexpr (sizeof(T) == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), words);
  } else {
    _mm_storeu_si64(to, _mm_packus_epi16(words, words));
  }
}

[[gnu::always_inline]] inline F32 loadFloat16(const std::byte* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// The hardware's conversion does not look at the flags that flush denormals.
[[gnu::always_inline]] inline void storeFloat16(std::byte* to, F32 values) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace tutti
