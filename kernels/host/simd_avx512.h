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

[[gnu::always_inline]] inline U32 widenCodes(Codes16 codes) {
  return bitsAs<U32>(_mm512_cvtepu16_epi32(bitsAs<__m256i>(codes)));
}
[[gnu::always_inline]] inline Codes16 narrowCodes(U32 codes) {
  return bitsAs<Codes16>(_mm512_cvtepi32_epi16(bitsAs<__m512i>(codes)));
}
[[gnu::always_inline]] inline Codes16 loadBytes(const std::byte* from) {
  return bitsAs<Codes16>(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
[[gnu::always_inline]] inline void storeBytes(std::byte* to, Codes16 codes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtepi16_epi8(bitsAs<__m256i>(codes)));
}

// The hardware's conversions do not look at the flags that flush denormals.
[[gnu::always_inline]] inline F32 float16ToFloat(Codes16 codes) {
  return _mm512_cvtph_ps(bitsAs<__m256i>(codes));
}
[[gnu::always_inline]] inline Codes16 floatToFloat16(F32 values) {
  return bitsAs<Codes16>(_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace tutti
