// The oracle of the programs: inputs from a counter hash, and what a collective must make of them, computed
// by plain loops that share nothing with the library.
//
// Element i of rank r is a pure function of (repetition, r, i), so every rank can compute every other rank's
// input. For reductions of floating-point types the values are small integers, chosen so that every partial
// sum, in any order, is an integer that the type holds exactly: a correct result has exactly one value, and
// the tolerance is 0. Only ncclAvg over a number of ranks that is no power of two rounds; see
// averageTolerance. int32 uses the full range, with wrapping. Operations that only move data get arbitrary
// bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "nccl.h"

namespace tutti::perf {

/// One set of inputs. `reduction` is empty when data is only moved.
struct Problem {
  ncclDataType_t type;
  std::optional<ncclRedOp_t> reduction;
  int nranks;
  std::uint64_t repetition;
};

/// What a check found.
struct Mismatches {
  std::uint64_t wrong = 0;  ///< wrong elements
  std::size_t first = 0;    ///< index of the first one; this and the texts mean something only when wrong > 0
  std::string expected;
  std::string got;

  /// Adds what was found in a block that starts at element `offset`.
  void merge(const Mismatches& block, std::size_t offset);
};

/// Bytes of one element. Types: ncclInt32, ncclFloat32, ncclFloat64, ncclBfloat16; others throw
/// std::invalid_argument, here and below.
std::size_t elementBytes(ncclDataType_t type);

/// Writes elements [first, first + count) of `rank`'s input to `out`, of any alignment.
void fillInput(const Problem& problem, int rank, std::size_t first, std::size_t count, void* out);

/// Compares `count` elements with elements [first, first + count) of the reduction over all ranks.
Mismatches checkReduction(const Problem& problem, std::size_t first, std::size_t count, const void* got);

/// Compares `count` elements, bit for bit, with elements [0, count) of `rank`'s input.
Mismatches checkCopy(const Problem& problem, int rank, std::size_t count, const void* got);

/// Largest correct |result - exact|, where `magnitude` is the sum of |input| / nranks over the ranks; 0
/// unless the reduction is a floating-point average over a number of ranks that is no power of two.
double averageTolerance(const Problem& problem, double magnitude);

/// Bytes before and after a receive region that must survive the operation.
inline constexpr std::size_t kGuardBytes = 64;

void paintGuards(std::byte* region, std::size_t region_bytes);

/// Number of guard bytes around the region that have changed.
std::size_t damagedGuards(const std::byte* region, std::size_t region_bytes);

/// bfloat16 as its bits; rounds to nearest, ties to even.
std::uint16_t bfloat16Bits(float value);
float fromBfloat16Bits(std::uint16_t bits);

}  // namespace tutti::perf
