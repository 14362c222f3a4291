// A second opinion on bench/verify.h: reductions computed element by element, with the rounding that nccl.h
// documents.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bench/minifloat.h"
#include "bench/verify.h"

namespace tutti::perf {

struct IntegerType {
  int bits;
  bool is_signed;
};

inline bool isInteger(ncclDataType_t type) { return type <= ncclUint64; }

inline IntegerType integerType(ncclDataType_t type) {
  const std::array<IntegerType, 6> types{
      {{8, true}, {8, false}, {32, true}, {32, false}, {64, true}, {64, false}}};
  return types.at(type);
}

inline const FloatFormat* narrowFormat(ncclDataType_t type) {
  if (type == ncclFloat16) return &kHalfFormat;
  if (type == ncclBfloat16) return &kBfloat16Format;
  if (type == ncclFloat8e4m3) return &kFloat8E4m3Format;
  if (type == ncclFloat8e5m2) return &kFloat8E5m2Format;
  return nullptr;
}

/// The element's bytes as a number, little-endian.
inline std::uint64_t loadBits(ncclDataType_t type, const std::byte* bytes, std::size_t index) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes + index * elementBytes(type), elementBytes(type));
  return bits;
}

inline void storeBits(ncclDataType_t type, std::uint64_t bits, std::byte* bytes, std::size_t index) {
  std::memcpy(bytes + index * elementBytes(type), &bits, elementBytes(type));
}

inline double load(ncclDataType_t type, const std::byte* bytes, std::size_t index) {
  const std::uint64_t bits = loadBits(type, bytes, index);
  if (type == ncclFloat64) return std::bit_cast<double>(bits);
  if (type == ncclFloat32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return decode(*narrowFormat(type), static_cast<std::uint32_t>(bits));
}

inline void store(ncclDataType_t type, double value, std::byte* bytes, std::size_t index) {
  if (type == ncclFloat64) return storeBits(type, std::bit_cast<std::uint64_t>(value), bytes, index);
  if (type == ncclFloat32) {
    return storeBits(type, std::bit_cast<std::uint32_t>(static_cast<float>(value)), bytes, index);
  }
  storeBits(type, encode(*narrowFormat(type), value), bytes, index);
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

/// Where partial results are rounded to the type: at every step, as when each is stored, or only at the end.
enum class Rounding { kEveryStep, kAtTheEnd };

/// One element of a floating-point reduction over `inputs`, in the order of ranks.
inline double reduceFloats(const Problem& problem, const std::vector<double>& inputs, Rounding rounding) {
  const bool wide = problem.type == ncclFloat64;
  const auto working = [wide](double value) {
    return wide ? value : static_cast<double>(static_cast<float>(value));
  };
  const auto stored = [&](double value) {
    return rounding == Rounding::kEveryStep ? rounded(problem.type, value) : working(value);
  };
  double total = 0;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    double value = inputs[rank];
    if (problem.reduction == ncclAvg) value = working(value * working(1.0 / problem.nranks));
    if (problem.reduction == kMulSum) value = working(value * (rank % 2 == 0 ? 1 : 2));
    if (rank == 0) {
      total = stored(value);
    } else if (picks(*problem.reduction)) {
      total = (problem.reduction == ncclMax) == (value > total) ? value : total;
    } else {
      total = stored(working(problem.reduction == ncclProd ? total * value : total + value));
    }
  }
  return rounded(problem.type, total);
}

/// `bits` as a number of the type, in the low or in all bits.
inline __int128 integerOf(IntegerType type, std::uint64_t bits) {
  if (type.bits < 64) bits &= (std::uint64_t{1} << type.bits) - 1;
  const bool negative = type.is_signed && (bits >> (type.bits - 1) & 1) != 0;
  return static_cast<__int128>(bits) - (negative ? static_cast<__int128>(1) << type.bits : 0);
}

/// The same for integers: step by step, wrapped at each.
inline std::uint64_t reduceIntegers(const Problem& problem, const std::vector<std::uint64_t>& inputs) {
  const IntegerType type = integerType(problem.type);
  const auto wrapped = [type](__int128 value) { return integerOf(type, static_cast<std::uint64_t>(value)); };
  __int128 total = integerOf(type, inputs[0]);
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    __int128 value = integerOf(type, inputs[rank]);
    if (problem.reduction == kMulSum && rank % 2 == 1) value = wrapped(2 * value);
    if (picks(*problem.reduction)) {
      total = problem.reduction == ncclMax ? std::max(total, value) : std::min(total, value);
    } else if (problem.reduction == ncclProd) {
      total = wrapped(static_cast<__int128>(static_cast<unsigned __int128>(total) *
                                            static_cast<unsigned __int128>(value)));
    } else {
      total = wrapped(total + value);
    }
  }
  if (problem.reduction == ncclAvg) total /= problem.nranks;
  return static_cast<std::uint64_t>(total);
}

/// What a library would compute.
inline std::vector<std::byte> bruteForce(const Problem& problem, std::size_t first, std::size_t count,
                                         Rounding rounding = Rounding::kEveryStep) {
  const auto inputs = inputsOf(problem, first, count);
  std::vector<std::byte> result(count * elementBytes(problem.type));
  std::vector<double> numbers(inputs.size());
  std::vector<std::uint64_t> integers(inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      if (isInteger(problem.type)) {
        integers[rank] = loadBits(problem.type, inputs[rank].data(), i);
      } else {
        numbers[rank] = load(problem.type, inputs[rank].data(), i);
      }
    }
    if (isInteger(problem.type)) {
      storeBits(problem.type, reduceIntegers(problem, integers), result.data(), i);
    } else {
      store(problem.type, reduceFloats(problem, numbers, rounding), result.data(), i);
    }
  }
  return result;
}

}  // namespace tutti::perf
