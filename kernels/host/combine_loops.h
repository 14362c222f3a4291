// The loops of combine, for the instruction set whose simd_*.h the including source has included before.
//
// One step loads the same few vectors of every source, reduces them in registers, and stores them to every
// destination. All loads of a step come before its stores: a destination may be one of the sources.
#pragma once

#include "kernels/host/combine_paths.h"
#include "kernels/host/narrow_floats.h"
#include "kernels/host/streaming.h"

namespace tutti {
namespace {

enum class Reduction : std::uint8_t { sum, scaled_sum, prod, min, max };

template <class V>
[[gnu::always_inline]] inline V reduceMax(V a, V b) {
  return a > b ? a : b;
}

template <class V>
[[gnu::always_inline]] inline V reduceMin(V a, V b) {
  return a < b ? a : b;
}

// Of two equal floats, which differ at most in the sign of zero, the greater one has the sign bit of both
// cleared where one has it cleared. The last line keeps a where b is NaN; where a is NaN no comparison has
// chosen it.
template <class V, class Bits>
[[gnu::always_inline]] inline V reduceMaxFloat(V a, V b) {
  const V equal = bitsAs<V>(bitsAs<Bits>(a) & bitsAs<Bits>(b));
  const V result = a > b ? a : (a == b ? equal : b);
  return isNaN(b) ? a : result;
}

template <class V, class Bits>
[[gnu::always_inline]] inline V reduceMinFloat(V a, V b) {
  const V equal = bitsAs<V>(bitsAs<Bits>(a) | bitsAs<Bits>(b));
  const V result = a < b ? a : (a == b ? equal : b);
  return isNaN(b) ? a : result;
}

// What the loops need to know of a type: what it computes in, a vector of that, the bytes of an element and
// of a vector in memory, and how many vectors one step takes, so that they fit into registers.

/// An integer type: its own lanes.
template <class T>
struct Integer {
  using Compute = T;
  using Vector = Vec<T>;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr std::size_t kVectorInMemory = kVectorBytes;
  static constexpr std::size_t kGroup = 4;

  [[gnu::always_inline]] static Vector load(const std::byte* from) { return loadVector<Vector>(from); }
  [[gnu::always_inline]] static void store(std::byte* to, Vector value) { storeVector(to, value); }
  [[gnu::always_inline]] static Vector max(Vector a, Vector b) { return reduceMax(a, b); }
  [[gnu::always_inline]] static Vector min(Vector a, Vector b) { return reduceMin(a, b); }
  [[gnu::always_inline]] static T scale(Scale scale) { return static_cast<T>(scale.bits); }
};

/// float and double. Bits: an unsigned integer of the size.
template <class T, class Bits>
struct Float {
  using Compute = T;
  using Vector = Vec<T>;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr std::size_t kVectorInMemory = kVectorBytes;
  static constexpr std::size_t kGroup = 4;

  [[gnu::always_inline]] static Vector canonical(Vector value) {
    const auto nan = bitsAs<Vector>(Vec<Bits>{} + (~Bits{0} >> 1));
    return isNaN(value) ? nan : value;
  }
  [[gnu::always_inline]] static Vector load(const std::byte* from) { return loadVector<Vector>(from); }
  [[gnu::always_inline]] static void store(std::byte* to, Vector value) { storeVector(to, canonical(value)); }
  [[gnu::always_inline]] static Vector max(Vector a, Vector b) {
    return reduceMaxFloat<Vector, Vec<Bits>>(a, b);
  }
  [[gnu::always_inline]] static Vector min(Vector a, Vector b) {
    return reduceMinFloat<Vector, Vec<Bits>>(a, b);
  }
  [[gnu::always_inline]] static T scale(Scale scale) {
    return static_cast<T>(__builtin_bit_cast(double, scale.bits));
  }
};
using Float32 = Float<float, std::uint32_t>;
using Float64 = Float<double, std::uint64_t>;

/// A type that computes in float; Memory says how it is stored.
template <class Memory>
struct Narrow : Float32 {
  static constexpr std::size_t kBytes = Memory::kBytes;
  static constexpr std::size_t kVectorInMemory = kFloatLanes * kBytes;

  [[gnu::always_inline]] static F32 load(const std::byte* from) { return Memory::load(from); }
  [[gnu::always_inline]] static void store(std::byte* to, F32 value) { Memory::store(to, value); }
};
using Float16 = Narrow<Float16Memory>;
using Float8E4M3 = Narrow<Float8E4M3Memory>;
using Float8E5M2 = Narrow<Float8E5M2Memory>;

struct BFloat16 : BFloat16Memory {
  using Compute = float;
  using Vector = FloatPair;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::size_t kVectorInMemory = kVectorBytes;
  static constexpr std::size_t kGroup = 2;

  [[gnu::always_inline]] static Vector max(Vector a, Vector b) {
    return {Float32::max(a.even, b.even), Float32::max(a.odd, b.odd)};
  }
  [[gnu::always_inline]] static Vector min(Vector a, Vector b) {
    return {Float32::min(a.even, b.even), Float32::min(a.odd, b.odd)};
  }
  [[gnu::always_inline]] static float scale(Scale scale) { return Float32::scale(scale); }
};

template <class E, Reduction kReduction>
[[gnu::always_inline]] inline typename E::Vector reduce(typename E::Vector a, typename E::Vector b) {
  if constexpr (kReduction == Reduction::max) {
    return E::max(a, b);
  } else if constexpr (kReduction == Reduction::min) {
    return E::min(a, b);
  } else if constexpr (kReduction == Reduction::prod) {
    return a * b;
  } else {
    return a + b;
  }
}

/// Copies less than 2 * kPiece bytes, in pieces of the compiler's choice.
template <std::size_t kPiece>
[[gnu::always_inline]] inline void copyPart(std::byte* to, const std::byte* from, std::size_t bytes) {
  if ((bytes & kPiece) != 0) {
    __builtin_memcpy(to, from, kPiece);
    to += kPiece;
    from += kPiece;
  }
  if constexpr (kPiece > 1) copyPart<kPiece / 2>(to, from, bytes);
}

/// The operands of one call where there are two sources, else any number of both sides. Where the operation
/// scales, there is a scale for each source.
template <class E>
struct Operands {
  const CombineArgs& args;
  const std::byte* src0;
  const std::byte* src1;
  std::byte* dst0;
  std::byte* dst1;
  const typename E::Compute* scales;
};

/// kSrcs is 2, or 0 for any number; kDsts is 1, 2, or 0 for any number.
template <class E, Reduction kReduction, std::uint32_t kSrcs, std::uint32_t kDsts>
class Loop {
  using Vector = typename E::Vector;
  static constexpr std::size_t kStepBytes = E::kVectorInMemory;
  static constexpr std::size_t kGroup = E::kGroup;

 public:
  /// Whole steps only. Returns how many bytes of each operand are done.
  [[gnu::always_inline]] static std::size_t steps(const Operands<E>& operands) {
    const std::size_t bytes = operands.args.n * E::kBytes;
    std::size_t at = 0;
    for (; at + kGroup * kStepBytes <= bytes; at += kGroup * kStepBytes) step<kGroup>(operands, at);
    return at;
  }

  /// What remains: single vectors, and less than a vector.
  [[gnu::always_inline]] static void rest(const Operands<E>& operands, std::size_t at) {
    const std::size_t bytes = operands.args.n * E::kBytes;
    for (; at + kStepBytes <= bytes; at += kStepBytes) step<1>(operands, at);
    if (at < bytes) tail(operands, at, bytes - at);
  }

 private:
  [[gnu::always_inline]] static const std::byte* source(const Operands<E>& o, std::uint32_t s) {
    if constexpr (kSrcs == 2) return s == 0 ? o.src0 : o.src1;
    return o.args.srcs[s];
  }

  [[gnu::always_inline]] static std::byte* destination(const Operands<E>& o, std::uint32_t d) {
    if constexpr (kDsts != 0) return d == 0 ? o.dst0 : o.dst1;
    return o.args.dsts[d];
  }

  [[gnu::always_inline]] static std::uint32_t sources(const Operands<E>& o) {
    return kSrcs != 0 ? kSrcs : o.args.src_count;
  }
  [[gnu::always_inline]] static std::uint32_t destinations(const Operands<E>& o) {
    return kDsts != 0 ? kDsts : o.args.dst_count;
  }

  [[gnu::always_inline]] static Vector scaled(const Operands<E>& o, std::uint32_t s, Vector value) {
    if constexpr (kReduction == Reduction::scaled_sum) {
      return value * o.scales[s];
    } else {
      return value;
    }
  }

  template <std::size_t kVectors>
  [[gnu::always_inline]] static void step(const Operands<E>& o, std::size_t at) {
    Vector result[kVectors];
    const std::byte* from = source(o, 0) + at;
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) result[v] = scaled(o, 0, E::load(from + v * kStepBytes));
    for (std::uint32_t s = 1; s < sources(o); ++s) {
      from = source(o, s) + at;
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) {
        result[v] = reduce<E, kReduction>(result[v], scaled(o, s, E::load(from + v * kStepBytes)));
      }
    }
    for (std::uint32_t d = 0; d < destinations(o); ++d) {
      std::byte* to = destination(o, d) + at;
      if constexpr (kDsts == 0 && kVectors == kGroup) {
        if ((o.args.stream >> d & 1) != 0) {
          stream(to, result);
          continue;
        }
      }
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) E::store(to + v * kStepBytes, result[v]);
    }
  }

  [[gnu::always_inline]] static void stream(std::byte* to, const Vector (&values)[kGroup]) {
    constexpr std::size_t kBytes = kGroup * kStepBytes;
    static_assert(kBytes % kStreamAlignment == 0);
    alignas(64) std::byte stored[kBytes];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kGroup; ++v) E::store(stored + v * kStepBytes, values[v]);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kBytes; i += kStreamAlignment) streamPiece(to + i, stored + i);
  }

  /// Less than a vector: through a padded one.
  [[gnu::always_inline]] static Vector loadPart(const std::byte* from, std::size_t bytes) {
    alignas(kVectorBytes) std::byte padded[kStepBytes] = {};
    copyPart<kStepBytes / 2>(padded, from, bytes);
    return E::load(padded);
  }

  [[gnu::always_inline]] static void tail(const Operands<E>& o, std::size_t at, std::size_t bytes) {
    Vector result = scaled(o, 0, loadPart(source(o, 0) + at, bytes));
    for (std::uint32_t s = 1; s < sources(o); ++s) {
      result = reduce<E, kReduction>(result, scaled(o, s, loadPart(source(o, s) + at, bytes)));
    }
    alignas(kVectorBytes) std::byte stored[kStepBytes];
    E::store(stored, result);
    for (std::uint32_t d = 0; d < destinations(o); ++d) {
      copyPart<kStepBytes / 2>(destination(o, d) + at, stored, bytes);
    }
  }
};

/// Any number of sources and destinations. Those that are streamed are aligned for it.
template <class E, DataType kType, Reduction kReduction>
void combineDirectly(const CombineArgs& args) {
  typename E::Compute factors[kReduction == Reduction::scaled_sum ? kMaxCombineOperands : 1];
  if constexpr (kReduction == Reduction::scaled_sum) {
    Scale scales[kMaxCombineOperands];
    resolveScales(args, kType, scales);
    for (std::uint32_t s = 0; s < args.src_count; ++s) factors[s] = E::scale(scales[s]);
  }
  const bool has_two = args.src_count == 2;
  const Operands<E> operands{args,
                             args.srcs[0],
                             has_two ? args.srcs[1] : nullptr,
                             args.dsts[0],
                             args.dst_count == 2 ? args.dsts[1] : nullptr,
                             factors};
  // Loops for fixed numbers of operands are for long operands; what they leave is done by the general one.
  using General = Loop<E, kReduction, 0, 0>;
  std::size_t done = 0;
  if (has_two && args.dst_count == 1 && args.stream == 0) {
    done = Loop<E, kReduction, 2, 1>::steps(operands);
  } else if (has_two && args.dst_count == 2 && args.stream == 0) {
    done = Loop<E, kReduction, 2, 2>::steps(operands);
  } else {
    done = General::steps(operands);
  }
  General::rest(operands, done);
}

template <class E, DataType kType, Reduction kReduction>
void combine(const CombineArgs& args) {
  const bool scales = kReduction == Reduction::scaled_sum && (args.own & 1) != 0;
  if (args.src_count == 1 && !scales) return copyCombine(args, E::kBytes);
  if (args.stream != 0) return combineStreaming(args, E::kBytes, combineDirectly<E, kType, kReduction>);
  combineDirectly<E, kType, kReduction>(args);
}

/// Divides in place. The quotient by way of Wide is exact: where it is not whole it is at least 1 / kMaxRanks
/// away from a whole number, which is more than Wide's rounding error.
template <class T, class Wide, class Quotient>
void divide(std::byte* values, std::uint64_t n, std::int32_t divisor) {
  if (divisor == 1) return;
  const auto by = static_cast<Wide>(divisor);
  for (std::uint64_t i = 0; i < n; ++i) {
    T value;
    __builtin_memcpy(&value, values + i * sizeof(T), sizeof(T));
    value = static_cast<T>(static_cast<Quotient>(static_cast<Wide>(value) / by));
    __builtin_memcpy(values + i * sizeof(T), &value, sizeof(T));
  }
}

/// avg of integers. T: the type with its sign; the sum does not depend on it.
template <class E, class T, class Wide, class Quotient, DataType kType>
void combineAverage(const CombineArgs& args) {
  if (!args.last) return combine<E, kType, Reduction::sum>(args);
  combineDividing(args, {E::kBytes, combineDirectly<E, kType, Reduction::sum>, divide<T, Wide, Quotient>});
}

template <class E, DataType kType>
constexpr void fillFloat(CombineFn (&row)[kAllRedOpCount]) {
  row[static_cast<int>(RedOp::sum)] = combine<E, kType, Reduction::sum>;
  row[static_cast<int>(RedOp::prod)] = combine<E, kType, Reduction::prod>;
  row[static_cast<int>(RedOp::max)] = combine<E, kType, Reduction::max>;
  row[static_cast<int>(RedOp::min)] = combine<E, kType, Reduction::min>;
  row[static_cast<int>(RedOp::avg)] = combine<E, kType, Reduction::scaled_sum>;
  row[static_cast<int>(RedOp::premul_sum)] = combine<E, kType, Reduction::scaled_sum>;
}

/// T: the type; Bits: the unsigned type of its size, which does what does not depend on the sign and has no
/// undefined overflow; Wide and Quotient: what its average is divided in and truncated to.
template <class T, class Bits, class Wide, class Quotient, DataType kType, DataType kBitsType>
constexpr void fillInteger(CombineFn (&row)[kAllRedOpCount]) {
  using Unsigned = Integer<Bits>;
  row[static_cast<int>(RedOp::sum)] = combine<Unsigned, kBitsType, Reduction::sum>;
  row[static_cast<int>(RedOp::prod)] = combine<Unsigned, kBitsType, Reduction::prod>;
  row[static_cast<int>(RedOp::max)] = combine<Integer<T>, kType, Reduction::max>;
  row[static_cast<int>(RedOp::min)] = combine<Integer<T>, kType, Reduction::min>;
  row[static_cast<int>(RedOp::avg)] = combineAverage<Unsigned, T, Wide, Quotient, kBitsType>;
  row[static_cast<int>(RedOp::premul_sum)] = combine<Unsigned, kBitsType, Reduction::scaled_sum>;
}

constexpr CombineTable makeCombineTable() {
  using enum DataType;
  using I8 = std::int8_t;
  using U8 = std::uint8_t;
  using S32 = std::int32_t;
  using S64 = std::int64_t;
  using W32 = std::uint32_t;
  using W64 = std::uint64_t;
  CombineTable table{};
  fillInteger<I8, U8, float, S32, int8, uint8>(table.functions[static_cast<int>(int8)]);
  fillInteger<U8, U8, float, S32, uint8, uint8>(table.functions[static_cast<int>(uint8)]);
  fillInteger<S32, W32, double, S32, int32, uint32>(table.functions[static_cast<int>(int32)]);
  fillInteger<W32, W32, double, S32, uint32, uint32>(table.functions[static_cast<int>(uint32)]);
  fillInteger<S64, W64, S64, S64, int64, uint64>(table.functions[static_cast<int>(int64)]);
  fillInteger<W64, W64, W64, W64, uint64, uint64>(table.functions[static_cast<int>(uint64)]);
  fillFloat<Float16, float16>(table.functions[static_cast<int>(float16)]);
  fillFloat<Float32, float32>(table.functions[static_cast<int>(float32)]);
  fillFloat<Float64, float64>(table.functions[static_cast<int>(float64)]);
  fillFloat<BFloat16, bfloat16>(table.functions[static_cast<int>(bfloat16)]);
  fillFloat<Float8E4M3, float8e4m3>(table.functions[static_cast<int>(float8e4m3)]);
  fillFloat<Float8E5M2, float8e5m2>(table.functions[static_cast<int>(float8e5m2)]);
  return table;
}

}  // namespace
}  // namespace tutti
