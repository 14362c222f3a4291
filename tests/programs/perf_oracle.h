// A second opinion on bench/verify.h: reductions computed element by element, with the rounding that nccl.h
// documents.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bench/verify.h"

namespace tutti::perf {

inline double load(ncclDataType_t type, const std::byte* bytes, std::size_t index) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
    return value;
  };
  if (type == ncclInt32) return as(std::int32_t{});
  if (type == ncclFloat32) return as(float{});
  if (type == ncclFloat64) return as(double{});
  return fromBfloat16Bits(as(std::uint16_t{}));
}

inline void store(ncclDataType_t type, double value, std::byte* bytes, std::size_t index) {
  const auto as = [&]<class T>(T element) { std::memcpy(bytes + index * sizeof(T), &element, sizeof(T)); };
  if (type == ncclInt32) as(static_cast<std::int32_t>(value));
  if (type == ncclFloat32) as(static_cast<float>(value));
  if (type == ncclFloat64) as(value);
  if (type == ncclBfloat16) as(bfloat16Bits(static_cast<float>(value)));
}

/// `value` as the type would hold it.
inline double rounded(ncclDataType_t type, double value) {
  std::array<std::byte, sizeof(double)> bytes{};
  store(type, value, bytes.data(), 0);
  return load(type, bytes.data(), 0);
}

inline std::vector<std::vector<std::byte>> inputsOf(const Problem& problem, std::size_t first,
                                                    std::size_t count) {
  std::vector<std::vector<std::byte>> inputs(static_cast<std::size_t>(problem.nranks));
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    inputs[rank].resize(count * elementBytes(problem.type));
    fillInput(problem, static_cast<int>(rank), first, count, inputs[rank].data());
  }
  return inputs;
}

/// What a library would compute, rounding after each step as documented in nccl.h.
inline std::vector<std::byte> bruteForce(const Problem& problem, std::size_t first, std::size_t count) {
  const auto inputs = inputsOf(problem, first, count);
  std::vector<std::byte> result(count * elementBytes(problem.type));
  const double n = problem.nranks;
  const bool integer = problem.type == ncclInt32;
  const double reciprocal =
      problem.type == ncclFloat64 ? 1 / n : static_cast<double>(1 / static_cast<float>(n));
  for (std::size_t i = 0; i < count; ++i) {
    double total = 0;
    std::uint32_t wrapped = 0;
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      double value = load(problem.type, inputs[rank].data(), i);
      wrapped += static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
      if (problem.reduction == ncclAvg) value = rounded(problem.type, value * reciprocal);
      const double combined =
          problem.reduction == ncclMax ? std::max(total, value) : rounded(problem.type, total + value);
      total = rank == 0 ? value : combined;
    }
    if (integer && problem.reduction != ncclMax) {
      const std::int32_t divisor = problem.reduction == ncclAvg ? problem.nranks : 1;
      const std::int32_t quotient = static_cast<std::int32_t>(wrapped) / divisor;
      total = quotient;
    }
    store(problem.type, total, result.data(), i);
  }
  return result;
}

}  // namespace tutti::perf
