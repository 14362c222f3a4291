// The independent oracle of the collectives: plain loops in double over small whole numbers.
//
// Inputs are chosen per type and operation so that every partial result over up to 64 ranks, in any order, is
// a whole number that the type holds exactly. Nothing here calls the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/core/descriptor.h"
#include "tests/harness/number_formats.h"

namespace tutti::test {

/// Greatest magnitude of an input of sums, min and max. 64 of them fit: int8 to 127, uint8 to 255, bfloat16
/// to 256; in premul_sum half of them count twice. Only four ranks give float8 more than zero (see
/// inputValue): e4m3 holds whole numbers to 16, e5m2 to 8.
inline int largestInput(DataType type, RedOp op) {
  if (type == DataType::int8 || type == DataType::float8e5m2) return 1;
  return type == DataType::float8e4m3 || op == RedOp::premul_sum ? 2 : 3;
}

/// What premul_sum multiplies a rank's contribution by.
inline double premulScalar(int rank) { return 1 + rank % 2; }

/// Element i of rank's input. The defaults serve every op but prod and premul_sum of float, double, int32 and
/// bfloat16.
inline double inputValue(std::uint64_t seed, int rank, std::uint64_t i, DataType type = DataType::float32,
                         RedOp op = RedOp::sum) {
  const auto r = static_cast<std::uint64_t>(rank);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + r * 0xbf58476d1ce4e5b9ULL + i;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  if (op == RedOp::prod) {  // ones, and at most two twos
    const double magnitude = r == i % 8 || r == i / 8 % 64 ? 2 : 1;
    return isSigned(type) && x % 2 == 0 ? -magnitude : magnitude;
  }
  const bool adds = op != RedOp::min && op != RedOp::max;
  const bool is_float8 = type == DataType::float8e4m3 || type == DataType::float8e5m2;
  if (is_float8 && adds && r / 4 != (i % 2 == 0 ? 0 : i / 2 % 16)) return 0;
  const int most = largestInput(type, op);
  if (!isSigned(type)) return static_cast<double>(x % static_cast<std::uint64_t>(most + 1));
  return static_cast<double>(x % static_cast<std::uint64_t>(2 * most + 1)) - most;
}

/// Calls `use` with a value of the C++ type that an integer or wide float type is.
template <class Use>
void withNativeType(DataType type, const Use& use) {
  switch (type) {
    case DataType::int8:
      return use(std::int8_t{});
    case DataType::uint8:
      return use(std::uint8_t{});
    case DataType::int32:
      return use(std::int32_t{});
    case DataType::uint32:
      return use(std::uint32_t{});
    case DataType::int64:
      return use(std::int64_t{});
    case DataType::uint64:
      return use(std::uint64_t{});
    case DataType::float32:
      return use(float{});
    default:
      return use(double{});
  }
}

inline void encode(DataType type, std::byte* at, double value) {
  if (isNarrowFloat(type)) {
    const std::uint64_t code = narrowNumbers(type).nearest(value);
    const auto low = static_cast<std::uint8_t>(code);
    const auto both = static_cast<std::uint16_t>(code);
    return void(sizeOf(type) == 1 ? std::memcpy(at, &low, 1) : std::memcpy(at, &both, 2));
  }
  withNativeType(type, [&](auto native) {
    native = static_cast<decltype(native)>(value);
    std::memcpy(at, &native, sizeof(native));
  });
}

inline double decode(DataType type, const std::byte* at) {
  if (isNarrowFloat(type)) {
    std::uint8_t low = 0;
    std::uint16_t both = 0;
    if (sizeOf(type) == 1) {
      std::memcpy(&low, at, 1);
    } else {
      std::memcpy(&both, at, 2);
    }
    return narrowNumbers(type).value(sizeOf(type) == 1 ? low : both);
  }
  double value = 0;
  withNativeType(type, [&](auto native) {
    std::memcpy(&native, at, sizeof(native));
    value = static_cast<double>(native);
  });
  return value;
}

/// Element i reduced over all ranks.
inline double reducedValue(std::uint64_t seed, int nranks, DataType type, RedOp op, std::uint64_t i) {
  double result = 0;
  for (int rank = 0; rank < nranks; ++rank) {
    double value = inputValue(seed, rank, i, type, op);
    if (op == RedOp::premul_sum) value *= premulScalar(rank);
    if (rank == 0) {
      result = value;
    } else if (op == RedOp::max || op == RedOp::min) {
      result = op == RedOp::max ? std::max(result, value) : std::min(result, value);
    } else {
      result = op == RedOp::prod ? result * value : result + value;
    }
  }
  if (op != RedOp::avg) return result;
  return isFloatingPoint(type) ? result / nranks : std::trunc(result / nranks);
}

/// What element i of rank's output must be after the collective.
inline double expectedValue(std::uint64_t seed, int nranks, int rank, const Descriptor& d, std::uint64_t i) {
  switch (d.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reducedValue(seed, nranks, d.type, d.op, i);
    case Collective::reduce_scatter:
      return reducedValue(seed, nranks, d.type, d.op, static_cast<std::uint64_t>(rank) * d.count + i);
    case Collective::all_gather:
      return inputValue(seed, static_cast<int>(i / d.count), i % d.count, d.type, d.op);
    case Collective::broadcast:
      return inputValue(seed, d.root, i, d.type, d.op);
    case Collective::all_to_all:
      return inputValue(seed, static_cast<int>(i / d.count),
                        static_cast<std::uint64_t>(rank) * d.count + i % d.count, d.type, d.op);
    case Collective::gather:
      return inputValue(seed, static_cast<int>(i / d.count), i % d.count, d.type, d.op);
    case Collective::scatter:
      return inputValue(seed, d.root, static_cast<std::uint64_t>(rank) * d.count + i, d.type, d.op);
  }
  return NAN;
}

/// How far a result may be off. Whole numbers are exact; a floating-point avg multiplies by a rounded 1/n and
/// rounds once per rank: at most n + 1 errors of half a unit, relative to a sum of magnitudes that is at most
/// the largest input, or half of the smallest subnormal.
inline double tolerance(DataType type, RedOp op, int nranks) {
  if (op != RedOp::avg || !isFloatingPoint(type)) return 0;
  const NumberFormat format = formatOf(type);
  const double relative = std::ldexp(1, -1 - format.mantissa_bits);
  const double smallest = std::ldexp(1, -format.bias() - format.mantissa_bits);
  return (nranks + 1) * (relative * largestInput(type, op) + smallest);
}

/// Whether the buffer of each rank, or of the root, holds a block for every rank.
inline bool hasInputBlocks(Collective c) {
  return c == Collective::reduce_scatter || c == Collective::all_to_all || c == Collective::scatter;
}
inline bool hasOutputBlocks(Collective c) {
  return c == Collective::all_gather || c == Collective::all_to_all || c == Collective::gather;
}

/// Whether only the root has a result.
inline bool onlyRootReceives(Collective c) { return c == Collective::reduce || c == Collective::gather; }
/// Whether only the root has an input.
inline bool onlyRootSends(Collective c) { return c == Collective::broadcast || c == Collective::scatter; }

/// Elements of each rank's input and output.
inline std::uint64_t inputCount(Collective collective, int nranks, std::uint64_t count) {
  return hasInputBlocks(collective) ? count * static_cast<std::uint64_t>(nranks) : count;
}
inline std::uint64_t outputCount(Collective collective, int nranks, std::uint64_t count) {
  return hasOutputBlocks(collective) ? count * static_cast<std::uint64_t>(nranks) : count;
}

/// In place: which element of the larger buffer the smaller one starts at. 0 where they are equally large.
inline std::uint64_t inPlaceOffset(Collective collective, int rank, std::uint64_t count) {
  const bool differ = hasInputBlocks(collective) != hasOutputBlocks(collective);
  return differ ? static_cast<std::uint64_t>(rank) * count : 0;
}

}  // namespace tutti::test
