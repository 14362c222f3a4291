// Who works on which sequences of a batch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::train {

/// What ranks of `--uneven` get, in turn: rank 0 the first, rank 1 the second, rank 2 the first again.
inline constexpr std::size_t kUnevenFew = 4;
inline constexpr std::size_t kUnevenMany = 400;

/// Sequences of each rank; `batch` is a multiple of `nranks`.
std::vector<std::size_t> evenCounts(std::size_t batch, std::size_t nranks);

/// kUnevenFew and kUnevenMany in turn.
std::vector<std::size_t> unevenCounts(std::size_t nranks);

/// Sequences of a step over all ranks.
std::size_t totalOf(std::span<const std::size_t> counts);

/// The contiguous part of a batch that belongs to `rank`; batch.size() is totalOf(counts).
std::span<const std::size_t> sliceOf(std::span<const std::size_t> batch, std::span<const std::size_t> counts,
                                     std::size_t rank);

/// Mean over the batch of what is a mean over its slice on each rank: sum of counts[r] * values[r] / total,
/// in the order of the ranks.
double weightedMean(std::span<const double> values, std::span<const std::size_t> counts);

}  // namespace tutti::train
