// Who takes part, and how much memory there is for all of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/results.h"
#include "tools/device/exchange.h"

namespace tutti::perf {

/// Of every rank, in the order of ranks. Collective. `group`: that of this process.
std::vector<RankInfo> gatherRankInfo(std::span<const device::Seat> seats, int group,
                                     device::Exchange& exchange);

/// The largest message that fits into the memory of every host, or of every GPU.
std::size_t largestMessage(const std::vector<RankInfo>& ranks, int buffers);

}  // namespace tutti::perf
