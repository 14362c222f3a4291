// The oracle of the programs: what a collective must make of the inputs (inputs.h), computed by plain loops
// that share nothing with the library.
//
// Every rank can compute every other rank's input, because it is a pure function of (repetition, rank,
// index). Results of reductions are exact, so a correct one has exactly one value and the tolerance is 0;
// only ncclAvg over a number of ranks that is no power of two rounds, see averageTolerance. Operations that
// only move data get arbitrary bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/problem.h"

namespace tutti::perf {

/// What a check found.
struct Mismatches {
  std::uint64_t wrong = 0;  ///< wrong elements
  std::size_t first = 0;    ///< index of the first one; this and the texts mean something only when wrong > 0
  std::string expected;
  std::string got;

  /// Adds what was found in a block that starts at element `offset`.
  void merge(const Mismatches& block, std::size_t offset);
};

/// Bytes of one element. A value that names no type throws std::invalid_argument, here and below.
std::size_t elementBytes(ncclDataType_t type);

/// Writes elements [first, first + count) of `rank`'s input to `out`, of any alignment.
void fillInput(const Problem& problem, int rank, std::size_t first, std::size_t count, void* out);

/// Writes the scalar by which `rank` multiplies its input in mulsum, as one element.
void writeScalar(ncclDataType_t type, int rank, void* out);

/// Compares `count` elements with elements [first, first + count) of the reduction over all ranks.
Mismatches checkReduction(const Problem& problem, std::size_t first, std::size_t count, const void* got);

/// Compares `count` elements, bit for bit, with elements [first, first + count) of `rank`'s input.
Mismatches checkCopy(const Problem& problem, int rank, std::size_t first, std::size_t count, const void* got);

/// Counts the bytes that differ from `value`.
Mismatches checkUntouched(const std::byte* got, std::size_t bytes, std::byte value);

/// Largest correct |result - exact| of a floating-point average, where `magnitude` is the sum of |input| /
/// nranks over the ranks. 0 when every step is exact: the number of ranks is a power of two and, for the
/// narrow types, not too large.
double averageTolerance(const Problem& problem, double magnitude);

/// Bytes before and after a receive region that must survive the operation.
inline constexpr std::size_t kGuardBytes = 64;

void paintGuards(std::byte* region, std::size_t region_bytes);

/// Number of guard bytes around the region that have changed.
std::size_t damagedGuards(const std::byte* region, std::size_t region_bytes);

}  // namespace tutti::perf
