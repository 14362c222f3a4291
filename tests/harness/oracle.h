// The independent oracle of the collectives: plain loops in double over small whole numbers.
//
// Inputs are whole numbers from -3 to 3, so that sums over up to 64 ranks are exact in every type that is
// tested (bfloat16 holds whole numbers to 256), in any order. Nothing here calls the code under test.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/core/descriptor.h"

namespace tutti::test {

/// Element i of rank's input.
inline double inputValue(std::uint64_t seed, int rank, std::uint64_t i) {
  std::uint64_t x =
      seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9ULL + i;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) % 7) - 3;
}

inline void encode(DataType type, std::byte* at, double value) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof(typed)); };
  switch (type) {
    case DataType::float32:
      return put(static_cast<float>(value));
    case DataType::float64:
      return put(value);
    case DataType::int32:
      return put(static_cast<std::int32_t>(value));
    case DataType::bfloat16:  // exact for these values: the low half of the float is zero
      return put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
    default:
      return;
  }
}

inline double decode(DataType type, const std::byte* at) {
  const auto get = [at](auto typed) {
    std::memcpy(&typed, at, sizeof(typed));
    return typed;
  };
  switch (type) {
    case DataType::float32:
      return get(float{});
    case DataType::float64:
      return get(double{});
    case DataType::int32:
      return get(std::int32_t{});
    case DataType::bfloat16:
      return std::bit_cast<float>(std::uint32_t{get(std::uint16_t{})} << 16);
    default:
      return NAN;
  }
}

/// Element i reduced over all ranks.
inline double reducedValue(std::uint64_t seed, int nranks, DataType type, RedOp op, std::uint64_t i) {
  double result = inputValue(seed, 0, i);
  for (int rank = 1; rank < nranks; ++rank) {
    const double value = inputValue(seed, rank, i);
    result = op == RedOp::max ? std::max(result, value) : result + value;
  }
  if (op == RedOp::avg) result /= nranks;
  return op == RedOp::avg && type == DataType::int32 ? std::trunc(result) : result;
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
      return inputValue(seed, static_cast<int>(i / d.count), i % d.count);
    case Collective::broadcast:
      return inputValue(seed, d.root, i);
  }
  return NAN;
}

/// How far a result may be off. Whole numbers are exact; avg multiplies by a rounded 1/n and rounds once per
/// rank: an error of at most (n + 1) units of 2^-p relative to a sum of magnitudes that is at most 3, p = 24,
/// 53 or 8 bits.
inline double tolerance(DataType type, RedOp op, int nranks) {
  if (op != RedOp::avg || type == DataType::int32) return 0;
  const double unit = type == DataType::bfloat16 ? 0x1p-8 : (type == DataType::float32 ? 0x1p-24 : 0x1p-53);
  return 3 * (nranks + 1) * unit;
}

/// Elements of each rank's input and output.
inline std::uint64_t inputCount(Collective collective, int nranks, std::uint64_t count) {
  return collective == Collective::reduce_scatter ? count * static_cast<std::uint64_t>(nranks) : count;
}
inline std::uint64_t outputCount(Collective collective, int nranks, std::uint64_t count) {
  return collective == Collective::all_gather ? count * static_cast<std::uint64_t>(nranks) : count;
}

}  // namespace tutti::test
