// What no choice of routes can exceed.
#pragma once

#include <vector>

#include "runtime/topology/channel_problem.h"

namespace tutti {

/// Links that every channel uses at least `uses` times in all, so that together they bound all channels.
struct Cut {
  std::vector<int> links;  ///< ascending
  int uses = 1;

  friend auto operator<=>(const Cut&, const Cut&) = default;
};

/// Whatever divides the places in two has to be passed by every channel: the narrowest cuts around each set
/// of places (from 9 places on, only around single ones and all but one), between places and ports, and
/// around all places at once. The narrowest first, each once.
std::vector<Cut> findCuts(const ChannelProblem& problem, const RouteRules& rules);

}  // namespace tutti
