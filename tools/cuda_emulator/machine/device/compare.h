// Comparisons of setp, set, slct. Floats: ordered ones are false with a NaN, unordered ones true.
#pragma once

#include "tools/cuda_emulator/machine/device/floats.h"

namespace tutti::emulator {

enum class Compare : u32 { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

template <Compare kCompare, class X>
[[gnu::always_inline]] inline bool compareValues(X x, X y) {
  if constexpr (kCompare == Compare::Eq) return x == y;
  if constexpr (kCompare == Compare::Ne) return x < y || x > y;
  if constexpr (kCompare == Compare::Lt) return x < y;
  if constexpr (kCompare == Compare::Le) return x <= y;
  if constexpr (kCompare == Compare::Gt) return x > y;
  if constexpr (kCompare == Compare::Ge) return x >= y;
  if constexpr (kCompare == Compare::Equ) return !(x < y || x > y);
  if constexpr (kCompare == Compare::Neu) return !(x == y);
  if constexpr (kCompare == Compare::Ltu) return !(x >= y);
  if constexpr (kCompare == Compare::Leu) return !(x > y);
  if constexpr (kCompare == Compare::Gtu) return !(x <= y);
  if constexpr (kCompare == Compare::Geu) return !(x < y);
  if constexpr (kCompare == Compare::Num) return x == x && y == y;
  if constexpr (kCompare == Compare::Nan) return !(x == x && y == y);
}

template <Compare kCompare, class T, u32 kMode>
[[gnu::always_inline]] inline bool compareFloat(Bits<T> a, Bits<T> b) {
  if constexpr (__is_same(T, f32)) return compareValues<kCompare>(flush<kMode>(a), flush<kMode>(b));
  return compareValues<kCompare>(operand<T, kMode>(a), operand<T, kMode>(b));
}

}  // namespace tutti::emulator
