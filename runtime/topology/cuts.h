// What no choice of routes can exceed.
#pragma once

#include <vector>

#include "runtime/topology/channel_problem.h"

namespace tutti {

/// Links of which every channel uses at least one, so that together they bound all channels. Ascending.
using Cut = std::vector<int>;

/// Whatever divides the places in two has to be passed by every channel: the narrowest cuts around each set
/// of places (from 9 places on, around single ones and between two; from 17 on none), and between places and
/// ports. The narrowest first, each once.
std::vector<Cut> findCuts(const ChannelProblem& problem, const RouteRules& rules);

/// By link: the least that a leg takes of it, in tenths.
std::vector<int> leastUses(const ChannelProblem& problem);

/// GB/s that no choice of routes exceeds.
double boundOf(const ChannelProblem& problem, const std::vector<Cut>& cuts);

}  // namespace tutti
