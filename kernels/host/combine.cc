#include "kernels/host/combine.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tutti {
namespace {

struct BFloat16 {
  std::uint16_t bits;
};

/// What a type computes in.
template <class T>
struct ComputeOf {
  using Type = T;
};
template <>
struct ComputeOf<BFloat16> {
  using Type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::Type;

// memcpy is how an unaligned access is written; it compiles to one load or store.
template <class T>
Compute<T> load(const std::byte* from, std::uint64_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  if constexpr (std::is_same_v<T, BFloat16>) {
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
  } else {
    return value;
  }
}

/// Rounds to nearest even. Infinities stay, and a NaN becomes the canonical one.
BFloat16 toBFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return {static_cast<std::uint16_t>(std::isnan(value) ? 0x7fffU : rounded)};
}

template <class T>
void store(std::byte* to, std::uint64_t i, Compute<T> value) {
  T stored;
  if constexpr (std::is_same_v<T, BFloat16>) {
    stored = toBFloat16(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    // All bits of the mantissa set, sign clear: the canonical NaN of GPUs.
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    stored = std::isnan(value) ? std::bit_cast<T>(std::numeric_limits<Bits>::max() >> 1) : value;
  } else {
    stored = value;
  }
  std::memcpy(to + i * sizeof(T), &stored, sizeof(T));
}

template <RedOp kOp, class C>
C reduce(C a, C b) {
  if constexpr (kOp == RedOp::max) {
    if constexpr (std::is_floating_point_v<C>) {
      using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
      // Equal values differ at most in the sign of zero, and a cleared sign bit wins.
      const C equal = std::bit_cast<C>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));
      const C number = std::isnan(a) ? b : a;
      return a > b ? a : (a < b ? b : (a == b ? equal : number));
    } else {
      return a > b ? a : b;
    }
  } else if constexpr (std::is_integral_v<C>) {
    using Unsigned = std::make_unsigned_t<C>;
    return static_cast<C>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <class T, RedOp kOp>
class Combine {
  using C = Compute<T>;
  static constexpr bool kScales = kOp == RedOp::avg && std::is_floating_point_v<C>;
  static constexpr bool kDivides = kOp == RedOp::avg && std::is_integral_v<C>;

 public:
  explicit Combine(const CombineArgs& args) : args_(args) {}

  void run() const {
    if constexpr (kDivides) {
      if (!args_.last) return Combine<T, RedOp::sum>(args_).run();
    }
    if (args_.src_count == 1 && args_.dst_count == 1) return loop<1, 1>();
    if (args_.src_count == 1 && args_.dst_count == 2) return loop<1, 2>();
    if (args_.src_count == 2 && args_.dst_count == 1) return loop<2, 1>();
    if (args_.src_count == 2 && args_.dst_count == 2) return loop<2, 2>();
    loop<0, 0>();
  }

 private:
  /// What source s is multiplied by when it is loaded.
  C scaleOf(std::uint32_t s) const {
    if constexpr (kScales) {
      return (args_.own >> s & 1) != 0 ? C{1} / static_cast<C>(args_.nranks) : C{1};
    } else {
      return C{1};
    }
  }

  static C scaled(C value, C scale) {
    if constexpr (kScales) {
      return value * scale;
    } else {
      return value;
    }
  }

  /// kSrcs and kDsts: the number of operands where it is 1 or 2, else 0 for any number.
  template <std::uint32_t kSrcs, std::uint32_t kDsts>
  void loop() const {
    const std::byte* src0 = args_.srcs[0];
    const std::byte* src1 = kSrcs == 2 ? args_.srcs[1] : nullptr;
    std::byte* dst0 = args_.dsts[0];
    std::byte* dst1 = kDsts == 2 ? args_.dsts[1] : nullptr;
    // Locals, because a store through a byte pointer might change anything that lies in memory.
    const std::uint64_t n = args_.n;
    const C divisor = kDivides ? static_cast<C>(args_.nranks) : C{1};
    const C scale0 = scaleOf(0);
    const C scale1 = kSrcs == 2 ? scaleOf(1) : C{1};
    // Operands are the same address or apart, so no iteration depends on another.
#pragma GCC ivdep
    for (std::uint64_t i = 0; i < n; ++i) {
      C value = scaled(load<T>(src0, i), scale0);
      if constexpr (kSrcs == 2) value = reduce<kOp>(value, scaled(load<T>(src1, i), scale1));
      if constexpr (kSrcs == 0) {
        for (std::uint32_t s = 1; s < args_.src_count; ++s) {
          value = reduce<kOp>(value, scaled(load<T>(args_.srcs[s], i), scaleOf(s)));
        }
      }
      if constexpr (kDivides) value = static_cast<C>(value / divisor);
      store<T>(dst0, i, value);
      if constexpr (kDsts == 2) store<T>(dst1, i, value);
      if constexpr (kDsts == 0) {
        for (std::uint32_t d = 1; d < args_.dst_count; ++d) store<T>(args_.dsts[d], i, value);
      }
    }
  }

  const CombineArgs& args_;
};

template <class T, RedOp kOp>
void combine(const CombineArgs& args) {
  Combine<T, kOp>(args).run();
}

template <class T>
CombineFn functionFor(RedOp op) {
  switch (op) {
    case RedOp::sum:
      return combine<T, RedOp::sum>;
    case RedOp::avg:
      return combine<T, RedOp::avg>;
    case RedOp::max:
      return combine<T, RedOp::max>;
    case RedOp::prod:
    case RedOp::min:
      break;
  }
  return nullptr;
}

}  // namespace

CombineFn combineFunction(DataType type, RedOp op) {
  switch (type) {
    case DataType::float32:
      return functionFor<float>(op);
    case DataType::float64:
      return functionFor<double>(op);
    case DataType::int32:
      return functionFor<std::int32_t>(op);
    case DataType::bfloat16:
      return functionFor<BFloat16>(op);
    default:
      return nullptr;
  }
}

bool isCopy(const CombineArgs& args, RedOp op) {
  return args.src_count == 1 && (op != RedOp::avg || (args.own == 0 && !args.last));
}

void copyCombine(const CombineArgs& args, std::size_t element_bytes) {
  for (std::uint32_t d = 0; d < args.dst_count; ++d) {
    if (args.dsts[d] != args.srcs[0]) std::memcpy(args.dsts[d], args.srcs[0], args.n * element_bytes);
  }
}

}  // namespace tutti
