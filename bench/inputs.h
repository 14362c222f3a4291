// The numbers that the ranks contribute to a checked reduction: a pure function of (repetition, rank, index).
//
// Integers use their full range (for products the odd numbers, because even ones soon make 0) and wrap. The
// others are chosen so that every partial result, in any order, is a number that the type holds exactly. With
// p significand bits and n ranks:
//
//   sum       integers k with |k| <= 2^p / n
//   mulsum    the same with the sum of the scalars for n
//   max, min  integers k with |k| <= 2^p
//   avg       n k with |k| <= 2^p / n: the averages are integers again
//   prod      +-2^e with e = -1, 0, 1, and one factor 1.5
//
// Where that leaves no number but 0, or too large an exponent, only every stride-th rank contributes, in
// turns from index to index. An average over more than 2^p ranks has one contributor, an integer k with |k|
// <= 2^p.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bench/elements.h"
#include "bench/problem.h"

namespace tutti::perf {

/// The output function of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Integers up to this are exact in the type, and no larger ones are used: 2^24 keeps the values of double
/// within what 32 hash bits fill.
template <class T>
constexpr std::int64_t exactLimit() {
  return std::int64_t{1} << std::min(significandDigits<T>(), 24);
}

/// An average whose one contributor is any integer.
template <class T>
bool hasOneContributor(const Problem& problem) {
  return problem.reduction == ncclAvg && problem.nranks > exactLimit<T>();
}

/// One rank's input.
template <class T>
class Input {
 public:
  Input(const Problem& problem, int rank)
      : key_(mix(problem.repetition * kOdd + static_cast<std::uint64_t>(rank) + 1)),
        rank_(static_cast<std::size_t>(rank)),
        nranks_(static_cast<std::size_t>(problem.nranks)),
        product_(problem.reduction == ncclProd) {
    if constexpr (!std::is_integral_v<T>) {
      if (problem.reduction) limit(problem);
    }
  }

  std::uint64_t hash(std::size_t index) const { return mix(key_ + index * kOdd); }

  Number<T> number(std::size_t index) const {
    const std::uint64_t bits = hash(index);
    if constexpr (std::is_integral_v<T>) {
      const auto value = static_cast<T>(bits >> (64 - 8 * sizeof(T)));
      return product_ ? static_cast<T>(value | 1) : value;
    } else {
      const bool contributes = stride_ == 1 || (rank_ + index) % stride_ == 0;
      if (product_) return factor(bits, index, contributes);
      if (!contributes) return 0;
      const auto span = static_cast<std::uint64_t>(2 * amplitude_ + 1);
      const std::int64_t integer = static_cast<std::int64_t>(((bits >> 32) * span) >> 32) - amplitude_;
      return static_cast<double>(integer * unit_);
    }
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;

  void limit(const Problem& problem) {
    constexpr std::int64_t kExact = exactLimit<T>();
    std::int64_t terms = problem.nranks;
    if (picks(*problem.reduction)) terms = 1;
    if (problem.reduction == kMulSum) terms = sumOfScalars(problem.nranks);
    if (product_) {
      constexpr std::int64_t kRange = exponentRange<T>();
      stride_ = static_cast<std::size_t>((terms + kRange - 1) / kRange);
    } else if (hasOneContributor<T>(problem)) {
      stride_ = nranks_;
      amplitude_ = kExact;
    } else {
      stride_ = static_cast<std::size_t>((terms + kExact - 1) / kExact);
      amplitude_ = std::max<std::int64_t>(kExact / terms, 1);
      if (problem.reduction == ncclAvg) unit_ = problem.nranks;
    }
  }

  double factor(std::uint64_t bits, std::size_t index, bool contributes) const {
    const int exponent = contributes ? static_cast<int>((bits >> 32) % 3) - 1 : 0;
    const double significand = index % nranks_ == rank_ ? 1.5 : 1;
    return ((bits & 1) == 0 ? significand : -significand) * powerOfTwo(exponent);
  }

  std::uint64_t key_;
  std::size_t rank_;
  std::size_t nranks_;
  bool product_;
  std::int64_t amplitude_ = 0;
  std::int64_t unit_ = 1;
  std::size_t stride_ = 1;
};

}  // namespace tutti::perf
