#include "bench/verify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace tutti::perf {
namespace {

constexpr std::size_t kChunk = 1024;
constexpr std::byte kGuard{0xA5};

struct Bfloat16 {
  std::uint16_t bits;
};

template <class T>
double widen(T value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return fromBfloat16Bits(value.bits);
  } else {
    return static_cast<double>(value);
  }
}

template <class T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return {bfloat16Bits(static_cast<float>(value))};
  } else {
    return static_cast<T>(value);
  }
}

/// Bits of the significand, the hidden one included: all integers up to 2^digits are exact.
template <class T>
constexpr int significandDigits() {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return 8;
  } else {
    return std::numeric_limits<T>::digits;
  }
}

/// Calls body(T{}) for the C++ type behind `type`.
template <class Body>
auto visitType(ncclDataType_t type, const Body& body) {
  switch (type) {
    case ncclInt32:
      return body(std::int32_t{});
    case ncclFloat32:
      return body(float{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(Bfloat16{});
    default:
      throw std::invalid_argument("no verification for data type " + std::to_string(type));
  }
}

/// The output function of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// One rank's input as numbers of type T.
template <class T>
class Input {
 public:
  Input(const Problem& problem, int rank)
      : key_(mix(problem.repetition * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(rank) + 1)) {
    if (std::is_same_v<T, std::int32_t> || !problem.reduction) return;
    // Sums of n values stay within 2^digits when each is within 2^digits / n; above that many ranks, only
    // every stride-th rank contributes. 2^24 keeps the values of double within what 32 hash bits fill.
    const auto exact = std::int64_t{1} << std::min(significandDigits<T>(), 24);
    const std::int64_t terms = *problem.reduction == ncclMax ? 1 : problem.nranks;
    const std::int64_t stride = (terms + exact - 1) / exact;
    amplitude_ = rank % stride == 0 ? std::max<std::int64_t>(exact / terms, 1) : 0;
  }

  std::uint64_t hash(std::size_t index) const { return mix(key_ + index * 0x9e3779b97f4a7c15U); }

  double number(std::size_t index) const {
    const std::uint64_t high = hash(index) >> 32;
    if constexpr (std::is_same_v<T, std::int32_t>) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(high));
    } else {
      const auto span = static_cast<std::uint64_t>(2 * amplitude_ + 1);
      return static_cast<double>(static_cast<std::int64_t>((high * span) >> 32) - amplitude_);
    }
  }

 private:
  std::uint64_t key_;
  std::int64_t amplitude_ = 0;
};

template <class T>
void fillElements(const Problem& problem, int rank, std::size_t first, std::size_t count, std::byte* out) {
  const Input<T> input(problem, rank);
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    if (problem.reduction) {
      element = narrow<T>(input.number(first + i));
    } else {
      const std::uint64_t hash = input.hash(first + i);
      std::memcpy(&element, &hash, sizeof(T));
    }
    std::memcpy(out + i * sizeof(T), &element, sizeof(T));
  }
}

struct Expected {
  std::array<double, kChunk> value;
  std::array<double, kChunk> tolerance;
};

/// What int32 makes of an exact sum: wrapped to 32 bits, then divided, truncating.
double integerResult(double sum, int divisor) {
  const auto wrapped = static_cast<std::int32_t>(static_cast<std::int64_t>(sum));
  const std::int32_t quotient = wrapped / divisor;
  return quotient;
}

/// Sums of up to 2^21 values of int32, and of all the others, are exact in double.
template <class T>
void reduceChunk(const Problem& problem, std::size_t first, std::size_t count, Expected& expected) {
  const ncclRedOp_t op = *problem.reduction;
  std::array<double, kChunk> magnitude{};
  expected.value.fill(0.0);
  if (op == ncclMax) expected.value.fill(-std::numeric_limits<double>::infinity());
  expected.tolerance.fill(0.0);
  for (int rank = 0; rank < problem.nranks; ++rank) {
    const Input<T> input(problem, rank);
    for (std::size_t i = 0; i < count; ++i) {
      const double number = input.number(first + i);
      double& value = expected.value[i];
      value = op == ncclMax ? std::max(value, number) : value + number;
      magnitude[i] += std::abs(number);
    }
  }
  if (op == ncclMax) return;
  const int divisor = op == ncclAvg ? problem.nranks : 1;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, std::int32_t>) {
      expected.value[i] = integerResult(expected.value[i], divisor);
    } else {
      expected.value[i] /= divisor;
      expected.tolerance[i] = averageTolerance(problem, magnitude[i] / divisor);
    }
  }
}

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return text.data();
}

template <class T>
Mismatches compareNumbers(const Expected& expected, std::size_t count, const std::byte* got) {
  Mismatches found;
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, got + i * sizeof(T), sizeof(T));
    const double value = widen(element);
    // Written so that a NaN is wrong.
    if (std::abs(value - expected.value[i]) <= expected.tolerance[i]) continue;
    if (found.wrong++ > 0) continue;
    found.first = i;
    found.expected = format("%.10g", expected.value[i]);
    if (expected.tolerance[i] > 0) found.expected += format(" +- %.3g", expected.tolerance[i]);
    found.got = format("%.10g", value);
  }
  return found;
}

std::string hexadecimal(const std::byte* bytes, std::size_t count) {
  std::string text = "0x";
  for (std::size_t i = count; i-- > 0;) {
    for (const int shift : {4, 0})
      text += "0123456789abcdef"[(std::to_integer<unsigned>(bytes[i]) >> shift) & 15U];
  }
  return text;
}

Mismatches compareBits(const std::byte* expected, const std::byte* got, std::size_t count, std::size_t size) {
  Mismatches found;
  if (std::memcmp(expected, got, count * size) == 0) return found;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(expected + i * size, got + i * size, size) == 0) continue;
    if (found.wrong++ > 0) continue;
    found.first = i;
    found.expected = hexadecimal(expected + i * size, size);
    found.got = hexadecimal(got + i * size, size);
  }
  return found;
}

/// Runs check(start, length) over [0, count) in chunks and merges what it finds.
template <class Check>
Mismatches inChunks(std::size_t count, const Check& check) {
  Mismatches found;
  for (std::size_t start = 0; start < count; start += kChunk) {
    found.merge(check(start, std::min(kChunk, count - start)), start);
  }
  return found;
}

}  // namespace

void Mismatches::merge(const Mismatches& block, std::size_t offset) {
  if (block.wrong == 0) return;
  if (wrong == 0) {
    first = offset + block.first;
    expected = block.expected;
    got = block.got;
  }
  wrong += block.wrong;
}

std::size_t elementBytes(ncclDataType_t type) {
  return visitType(type, [](auto element) { return sizeof(element); });
}

void fillInput(const Problem& problem, int rank, std::size_t first, std::size_t count, void* out) {
  visitType(problem.type, [&](auto element) {
    fillElements<decltype(element)>(problem, rank, first, count, static_cast<std::byte*>(out));
  });
}

Mismatches checkReduction(const Problem& problem, std::size_t first, std::size_t count, const void* got) {
  const auto* bytes = static_cast<const std::byte*>(got);
  return visitType(problem.type, [&](auto element) {
    using T = decltype(element);
    Expected expected;
    return inChunks(count, [&](std::size_t start, std::size_t length) {
      reduceChunk<T>(problem, first + start, length, expected);
      return compareNumbers<T>(expected, length, bytes + start * sizeof(T));
    });
  });
}

Mismatches checkCopy(const Problem& problem, int rank, std::size_t count, const void* got) {
  const std::size_t size = elementBytes(problem.type);
  const auto* bytes = static_cast<const std::byte*>(got);
  std::array<std::byte, kChunk * sizeof(double)> expected;
  return inChunks(count, [&](std::size_t start, std::size_t length) {
    fillInput(problem, rank, start, length, expected.data());
    return compareBits(expected.data(), bytes + start * size, length, size);
  });
}

// The library multiplies each input by 1/n when it loads it, then sums. With p significand bits and u = 2^-p,
// and S the sum of |input| / n: the rounded 1/n and the product err by u each (16-bit types do this in fp32,
// so by less, but round once more when the product is stored); each of the n - 1 additions rounds a partial
// sum of at most S(1 + small), by u S. Together at most (n + 2) u S to first order; one more covers higher
// orders. For n a power of two every step is exact: the inputs are integers of at most 2^p / n.
double averageTolerance(const Problem& problem, double magnitude) {
  const auto n = static_cast<unsigned>(problem.nranks);
  if (problem.reduction != ncclAvg || problem.type == ncclInt32 || std::has_single_bit(n)) return 0;
  const int digits =
      visitType(problem.type, [](auto element) { return significandDigits<decltype(element)>(); });
  return std::ldexp((n + 3.0) * magnitude, -digits);
}

void paintGuards(std::byte* region, std::size_t region_bytes) {
  std::fill_n(region - kGuardBytes, kGuardBytes, kGuard);
  std::fill_n(region + region_bytes, kGuardBytes, kGuard);
}

std::size_t damagedGuards(const std::byte* region, std::size_t region_bytes) {
  const auto damaged = [](std::byte value) { return value != kGuard; };
  const auto* after = region + region_bytes;
  return static_cast<std::size_t>(std::count_if(region - kGuardBytes, region, damaged) +
                                  std::count_if(after, after + kGuardBytes, damaged));
}

std::uint16_t bfloat16Bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  const std::uint32_t to_even = 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((bits + to_even) >> 16);
}

float fromBfloat16Bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace tutti::perf
