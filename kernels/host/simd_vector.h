// Vectors of the compiler, of the width that the including source has named: simd_avx512.h and its like do.
//
// Everything is in an unnamed namespace, on purpose: each source has its own copy, in its own instruction
// set. For the same reason there are no functions of the standard library here (see combine_paths.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {
namespace {

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));  // NOLINT(modernize-use-using)
};
/// kVectorBytes / sizeof(T) lanes. Operators work lane by lane; a comparison gives all ones or all zeros in
/// each lane of an integer vector, by which ?: chooses lanes.
template <class T>
using Vec = typename VectorOf<T>::Type;

using U32 = Vec<std::uint32_t>;
using I32 = Vec<std::int32_t>;
using F32 = Vec<float>;
inline constexpr std::size_t kFloatLanes = kVectorBytes / sizeof(float);

template <class T>
struct CodesOf {
  typedef T Type __attribute__((vector_size(kFloatLanes * sizeof(T))));  // NOLINT(modernize-use-using)
};
/// As many lanes as F32 has, of 16 and 8 bits: floats narrower than 32 bits in the form in which they are
/// stored.
using Codes16 = typename CodesOf<std::uint16_t>::Type;
using Codes8 = typename CodesOf<std::uint8_t>::Type;

/// The same bits as another vector.
template <class To, class From>
[[gnu::always_inline]] inline To bitsAs(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  __builtin_memcpy(&result, &value, sizeof(To));
  return result;
}

/// All ones in the lanes that are NaN, for vectors of floats.
template <class V>
[[gnu::always_inline]] inline auto isNaN(V value) {
  return value != value;  // NOLINT(misc-redundant-expression): only NaN differs from itself
}

template <class V>
[[gnu::always_inline]] inline V loadVector(const std::byte* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}

template <class V>
[[gnu::always_inline]] inline void storeVector(std::byte* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

}  // namespace
}  // namespace tutti
