#include "bench/verify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/elements.h"
#include "bench/inputs.h"

namespace tutti::perf {
namespace {

constexpr std::size_t kChunk = 1024;
constexpr std::byte kGuard{0xA5};

template <class T>
void fillElements(const Problem& problem, int rank, std::size_t first, std::size_t count, std::byte* out) {
  const Input<T> input(problem, rank);
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    if (problem.reduction) {
      element = elementOf<T>(input.number(first + i));
    } else {
      const std::uint64_t hash = input.hash(first + i);
      std::memcpy(&element, &hash, sizeof(T));
    }
    std::memcpy(out + i * sizeof(T), &element, sizeof(T));
  }
}

template <class T>
struct Expected {
  std::array<Number<T>, kChunk> value;
  std::array<double, kChunk> tolerance;  ///< 0 for integers
};

/// Integers modulo 2^64, of which the type keeps the lower bits: the same as wrapping in the type.
template <class T>
T reduceIntegers(const Problem& problem, const std::vector<Input<T>>& inputs, std::size_t index) {
  const ncclRedOp_t op = *problem.reduction;
  std::uint64_t sum = 0;
  std::uint64_t product = 1;
  T least = std::numeric_limits<T>::max();
  T most = std::numeric_limits<T>::min();
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    const T number = inputs[rank].number(index);
    const auto wide =
        static_cast<std::uint64_t>(number);  // NOLINT(bugprone-signed-char-misuse): extends the sign
    const int scalar = op == kMulSum ? scalarOf(static_cast<int>(rank)) : 1;
    sum += wide * static_cast<std::uint64_t>(scalar);
    product *= wide;
    least = std::min(least, number);
    most = std::max(most, number);
  }
  if (op == ncclMin) return least;
  if (op == ncclMax) return most;
  if (op == ncclProd) return static_cast<T>(product);
  const T wrapped = static_cast<T>(sum);
  if (op != ncclAvg) return wrapped;
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  return static_cast<T>(static_cast<Wide>(wrapped) / static_cast<Wide>(problem.nranks));
}

/// The exact result and the sum of the inputs' magnitudes. All that inputs.h chooses is exact in double.
template <class T>
std::pair<double, double> reduceFloats(const Problem& problem, const std::vector<Input<T>>& inputs,
                                       std::size_t index) {
  const ncclRedOp_t op = *problem.reduction;
  double result = inputs[0].number(index) * (op == kMulSum ? scalarOf(0) : 1);
  double magnitude = std::abs(result);
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    double number = inputs[rank].number(index);
    magnitude += std::abs(number);
    if (op == kMulSum) number *= scalarOf(static_cast<int>(rank));
    if (op == ncclMin) {
      result = std::min(result, number);
    } else if (op == ncclMax) {
      result = std::max(result, number);
    } else if (op == ncclProd) {
      result *= number;
    } else {
      result += number;
    }
  }
  if (op == ncclAvg) result /= problem.nranks;
  return {result, magnitude};
}

template <class T>
void reduceChunk(const Problem& problem, const std::vector<Input<T>>& inputs, std::size_t first,
                 std::size_t count, Expected<T>& expected) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      expected.value[i] = reduceIntegers(problem, inputs, first + i);
      expected.tolerance[i] = 0;
    } else {
      const auto [exact, magnitude] = reduceFloats(problem, inputs, first + i);
      expected.value[i] = exact;
      expected.tolerance[i] = averageTolerance(problem, magnitude / problem.nranks);
    }
  }
}

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return text.data();
}

template <class T>
bool isRight(const Expected<T>& expected, std::size_t i, Number<T> got) {
  if constexpr (std::is_integral_v<T>) {
    return got == expected.value[i];
  } else {
    return std::abs(got - expected.value[i]) <= expected.tolerance[i];  // a NaN is wrong
  }
}

template <class T>
std::string textOf(T number) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(number);
  } else {
    return format("%.10g", number);
  }
}

template <class T>
Mismatches compareNumbers(const Expected<T>& expected, std::size_t count, const std::byte* got) {
  Mismatches found;
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, got + i * sizeof(T), sizeof(T));
    const Number<T> value = numberOf(element);
    if (isRight(expected, i, value)) continue;
    if (found.wrong++ > 0) continue;
    found.first = i;
    found.expected = textOf(expected.value[i]);
    if (expected.tolerance[i] > 0) found.expected += format(" +- %.3g", expected.tolerance[i]);
    found.got = textOf(value);
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

void writeScalar(ncclDataType_t type, int rank, void* out) {
  visitType(type, [&](auto element) {
    element = elementOf<decltype(element)>(static_cast<Number<decltype(element)>>(scalarOf(rank)));
    std::memcpy(out, &element, sizeof(element));
  });
}

Mismatches checkReduction(const Problem& problem, std::size_t first, std::size_t count, const void* got) {
  const auto* bytes = static_cast<const std::byte*>(got);
  return visitType(problem.type, [&](auto element) {
    using T = decltype(element);
    Expected<T> expected;
    std::vector<Input<T>> inputs;
    inputs.reserve(static_cast<std::size_t>(problem.nranks));
    for (int rank = 0; rank < problem.nranks; ++rank) inputs.emplace_back(problem, rank);
    return inChunks(count, [&](std::size_t start, std::size_t length) {
      reduceChunk<T>(problem, inputs, first + start, length, expected);
      return compareNumbers<T>(expected, length, bytes + start * sizeof(T));
    });
  });
}

Mismatches checkCopy(const Problem& problem, int rank, std::size_t first, std::size_t count,
                     const void* got) {
  const std::size_t size = elementBytes(problem.type);
  const auto* bytes = static_cast<const std::byte*>(got);
  std::array<std::byte, kChunk * sizeof(double)> expected;
  return inChunks(count, [&](std::size_t start, std::size_t length) {
    fillInput(problem, rank, first + start, length, expected.data());
    return compareBits(expected.data(), bytes + start * size, length, size);
  });
}

Mismatches checkUntouched(const std::byte* got, std::size_t bytes, std::byte value) {
  std::array<std::byte, kChunk> expected;
  expected.fill(value);
  return inChunks(bytes, [&](std::size_t start, std::size_t length) {
    return compareBits(expected.data(), got + start, length, 1);
  });
}

// The library multiplies each input by 1/n when it loads it, then sums; the types narrower than double do
// this in fp32 and round once more whenever a partial sum is stored.
//
// The inputs are multiples of n, so the exact partial sums are integers that the type holds. Let u be 2^-53
// for double, 2^-24 for all others, and S the sum of |input| / n. The rounded 1/n and the product err by u
// each, each of the n - 1 additions by u S at most: together (n + 1) u S to first order. Storing a partial
// sum in a narrow type brings it back to the integer, as that is the nearest number; or, where the integer is
// 0, it keeps what remains of the errors and changes it by another 2^-p of itself, which over up to 2^p
// stores makes a factor of e at most. 4 (n + 1) u S covers that and the higher orders. For n a power of two,
// 1/n and all products are exact.
//
// Over more than 2^p ranks (narrow types only) there is one contributor. Its product errs as above, and is
// rounded to the type: by half a unit in the last place, 2^-p of itself, or half of the smallest number where
// it is subnormal.
double averageTolerance(const Problem& problem, double magnitude) {
  if (problem.reduction != ncclAvg) return 0;
  return visitType(problem.type, [&](auto element) -> double {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) {
      return 0;
    } else {
      const double n = problem.nranks;
      const double unit = powerOfTwo(std::is_same_v<T, double> ? -53 : -24);
      if (!hasOneContributor<T>(problem)) {
        return std::has_single_bit(static_cast<unsigned>(problem.nranks)) ? 0
                                                                          : 4 * (n + 1) * unit * magnitude;
      }
      constexpr int kDigits = significandDigits<T>();
      const double half_of_smallest = powerOfTwo(-exponentRange<T>() - kDigits);
      return (powerOfTwo(-kDigits) + 4 * unit) * magnitude + half_of_smallest;
    }
  });
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

}  // namespace tutti::perf
