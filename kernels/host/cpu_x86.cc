#include "kernels/host/cpu.h"

#include <cpuid.h>
#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/host/combine_paths.h"

namespace tutti {
namespace {

/// Not every compiler's __builtin_cpu_supports knows this name.
bool hasF16C() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

// Lines are written whole, so that the write-combining buffers go out as one transfer each; what lies before
// the first and after the last whole line is written normally.
void streamingCopy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(from + i);
    const __m128i a = _mm_loadu_si128(line);
    const __m128i b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2);
    const __m128i d = _mm_loadu_si128(line + 3);
    auto* out = reinterpret_cast<__m128i*>(to + i);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

void streamingFence() { _mm_sfence(); }

std::uint32_t floatControl() { return _mm_getcsr(); }

void setFloatControl(std::uint32_t control) { _mm_setcsr(control); }

const std::uint32_t kDefaultFloatControl = 0x1f80;

std::span<const CombinePath> combinePaths() {
  static constexpr std::array<CombinePath, 3> kPaths = {
      {{"avx512", &kCombineAvx512}, {"avx2", &kCombineAvx2}, {"sse2", &kCombinePortable}}};
  static const std::size_t first = [] {
    // These ask the operating system's support for the registers too.
    const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && hasF16C();
    const bool has_avx512 =
        has_avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
        __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    return has_avx512 ? std::size_t{0} : (has_avx2 ? std::size_t{1} : std::size_t{2});
  }();
  return std::span(kPaths).subspan(first);
}

}  // namespace tutti
