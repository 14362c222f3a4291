// What the ranks tell each other beside the measured operations, through the library itself.
#pragma once

#include <vector>

#include "bench/results.h"
#include "tutti/tutti.h"

namespace tutti::perf {

/// `value` of every rank, in the order of ranks.
std::vector<double> gather(Comm& comm, double value);

/// `values` of every rank, all of the same length, one rank after the other.
std::vector<double> gather(Comm& comm, const std::vector<double>& values);

/// Of every rank, in the order of ranks.
std::vector<RankInfo> gatherRankInfo(Comm& comm);

/// The largest message that fits into the memory of every host.
std::size_t largestMessage(const std::vector<RankInfo>& ranks, int buffers);

}  // namespace tutti::perf
