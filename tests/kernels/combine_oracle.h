// combine by its plain definition, one element at a time. Bits in, bits out; nothing here calls the code
// under test.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kernels/host/combine.h"
#include "tests/harness/number_formats.h"

namespace tutti::test {

/// What of a call matters to one element.
struct Call {
  DataType type = DataType::float32;
  RedOp op = RedOp::sum;
  std::uint64_t own = 0;
  std::vector<Scale> scales;  ///< one per source
  std::int32_t nranks = 1;
  bool last = false;

  bool isOwn(std::size_t s) const { return (own >> s & 1) != 0; }
};

/// C: float or double, in which the type computes.
template <class C>
C valueOf(DataType type, std::uint64_t bits) {
  if (type == DataType::float64) return static_cast<C>(std::bit_cast<double>(bits));
  if (type == DataType::float32)
    return static_cast<C>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<C>(narrowNumbers(type).value(bits));
}

template <class C>
std::uint64_t bitsOf(DataType type, C value) {
  if (std::isnan(value)) return formatOf(type).canonicalNaN();
  if (type == DataType::float64) return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  if (type == DataType::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return narrowNumbers(type).nearest(static_cast<double>(value));
}

template <class C>
C reduceFloats(RedOp op, C a, C b) {
  if (op == RedOp::prod) return a * b;
  if (op != RedOp::min && op != RedOp::max) return a + b;
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return (op == RedOp::min) == a_is_less ? a : b;
}

template <class C>
std::uint64_t combineFloats(const Call& call, std::span<const std::uint64_t> sources) {
  const bool scales = call.op == RedOp::avg || call.op == RedOp::premul_sum;
  if (sources.size() == 1 && !(scales && call.isOwn(0))) return sources[0];
  const auto contribution = [&](std::size_t s) {
    const C value = valueOf<C>(call.type, sources[s]);
    return scales && call.isOwn(s) ? value * static_cast<C>(std::bit_cast<double>(call.scales[s].bits))
                                   : value;
  };
  C result = contribution(0);
  for (std::size_t s = 1; s < sources.size(); ++s) result = reduceFloats(call.op, result, contribution(s));
  return bitsOf(call.type, result);
}

/// The value of the low bits as the type has it, in 64 bits; for uint64 the bits themselves.
inline std::int64_t integerValue(DataType type, std::uint64_t bits) {
  const int unused = 64 - 8 * static_cast<int>(sizeOf(type));
  const std::uint64_t top = bits << unused;
  return isSigned(type) ? static_cast<std::int64_t>(top) >> unused : static_cast<std::int64_t>(top >> unused);
}

inline std::uint64_t combineIntegers(const Call& call, std::span<const std::uint64_t> sources) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * sizeOf(call.type));
  const auto isLess = [&](std::uint64_t a, std::uint64_t b) {
    return isSigned(call.type) ? integerValue(call.type, a) < integerValue(call.type, b) : a < b;
  };
  std::uint64_t result = 0;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const bool scales = call.op == RedOp::premul_sum && call.isOwn(s);
    const std::uint64_t value = scales ? sources[s] * call.scales[s].bits & mask : sources[s];
    if (s == 0) {
      result = value;
    } else if (call.op == RedOp::min || call.op == RedOp::max) {
      result = (call.op == RedOp::min) == isLess(result, value) ? result : value;
    } else {
      result = (call.op == RedOp::prod ? result * value : result + value) & mask;
    }
  }
  if (call.op != RedOp::avg || !call.last) return result;
  const auto n = static_cast<std::uint64_t>(call.nranks);
  if (!isSigned(call.type)) return result / n;
  return static_cast<std::uint64_t>(integerValue(call.type, result) / call.nranks) & mask;
}

/// One element of the result.
inline std::uint64_t combineElement(const Call& call, std::span<const std::uint64_t> sources) {
  if (!isFloatingPoint(call.type)) return combineIntegers(call, sources);
  return call.type == DataType::float64 ? combineFloats<double>(call, sources)
                                        : combineFloats<float>(call, sources);
}

/// What the values of one call are drawn from.
enum class Draw : std::uint8_t { bits, special, ordinary, mixed };

/// The values at which arithmetic goes wrong.
inline std::vector<std::uint64_t> specialBits(DataType type) {
  const int width = 8 * static_cast<int>(sizeOf(type));
  const std::uint64_t top = std::uint64_t{1} << (width - 1);
  if (!isFloatingPoint(type)) return {0, 1, 2, top - 1, top, top + 1, top + (top - 1), top / 2};
  const NumberFormat format = formatOf(type);
  const std::uint64_t ulp_of_one = std::uint64_t{1} << format.mantissa_bits;
  const std::uint64_t one = static_cast<std::uint64_t>(format.bias()) << format.mantissa_bits;
  std::vector<std::uint64_t> result{0,       1,       ulp_of_one - 1,         ulp_of_one,           one,
                                    one + 1, one - 1, format.largestFinite(), format.canonicalNaN()};
  if (format.has_infinity) {
    result.insert(result.end(),
                  {format.infinity(), format.infinity() + 1, format.infinity() + ulp_of_one / 2});
  }
  for (std::size_t i = result.size(); i-- > 0;) result.push_back(result[i] | top);
  return result;
}

inline std::uint64_t drawBits(DataType type, Draw draw, std::mt19937_64& random) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * sizeOf(type));
  if (draw == Draw::mixed) draw = static_cast<Draw>(random() % 3);
  if (draw == Draw::bits) return random() & mask;
  if (draw == Draw::special) {
    const std::vector<std::uint64_t> all = specialBits(type);
    return all[random() % all.size()];
  }
  if (!isFloatingPoint(type)) return random() % 100 & mask;
  // Within a few powers of two of one, of both signs: sums and products stay finite and round.
  const NumberFormat format = formatOf(type);
  const std::uint64_t exponent = static_cast<std::uint64_t>(format.bias()) - 2 + random() % 4;
  const std::uint64_t mantissa = random() & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  return (exponent << format.mantissa_bits) | mantissa | (random() % 2 == 0 ? format.sign() : 0);
}

inline Scale drawScale(DataType type, std::mt19937_64& random) {
  if (!isFloatingPoint(type)) return {random() % 2 == 0 ? random() : random() % 5};
  const auto wide = [](double value) { return Scale{std::bit_cast<std::uint64_t>(value)}; };
  switch (random() % 4) {
    case 0:
      return wide(type == DataType::float64 ? 1.0 / 3 : double{1.0F / 3.0F});
    case 1:
      return wide(type == DataType::float64 ? valueOf<double>(type, drawBits(type, Draw::special, random))
                                            : valueOf<float>(type, drawBits(type, Draw::special, random)));
    case 2:  // any float
      return wide(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    default:
      return wide(static_cast<double>(random() % 7) - 3);
  }
}

}  // namespace tutti::test
