// Streaming stores, which go past the caches: for each source that includes this a copy of its own, see
// combine_paths.h. Where the CPU has none they are plain stores.
#pragma once

#include <cstddef>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tutti {
namespace {

inline constexpr std::size_t kStreamAlignment = 16;

/// 16 bytes; both addresses are aligned to them. A run of them in order leaves the CPU in whole lines.
[[gnu::always_inline]] inline void streamPiece(std::byte* to, const std::byte* from) {
#ifdef __SSE2__
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_load_si128(reinterpret_cast<const __m128i*>(from)));
#else
  __builtin_memcpy(to, from, kStreamAlignment);
#endif
}

}  // namespace
}  // namespace tutti
