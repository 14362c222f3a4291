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

// The upper halves of what is narrowed are zero, so that packing does not saturate.
[[gnu::always_inline]] inline U32 widenCodes(Codes16 codes) {
  return bitsAs<U32>(_mm256_cvtepu16_epi32(bitsAs<__m128i>(codes)));
}
[[gnu::always_inline]] inline Codes16 narrowCodes(U32 codes) {
  const auto lanes = bitsAs<__m256i>(codes);
  return bitsAs<Codes16>(_mm_packus_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1)));
}
[[gnu::always_inline]] inline Codes16 loadBytes(const std::byte* from) {
  return bitsAs<Codes16>(_mm_cvtepu8_epi16(_mm_loadu_si64(from)));
}
[[gnu::always_inline]] inline void storeBytes(std::byte* to, Codes16 codes) {
  const auto words = bitsAs<__m128i>(codes);
  _mm_storeu_si64(to, _mm_packus_epi16(words, words));
}

// The hardware's conversions do not look at the flags that flush denormals.
[[gnu::always_inline]] inline F32 float16ToFloat(Codes16 codes) {
  return _mm256_cvtph_ps(bitsAs<__m128i>(codes));
}
[[gnu::always_inline]] inline Codes16 floatToFloat16(F32 values) {
  return bitsAs<Codes16>(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace tutti
