// What links are worth to channels: the bound of all choices of routes, and which routes come near it.
#pragma once

#include <vector>

#include "runtime/topology/channel_problem.h"
#include "runtime/topology/routes.h"

namespace tutti {

/// A channel of 1 GB/s pays by_link for each byte that it takes, and whatever its route, at least 1 in all.
/// So no choice of routes carries more than all links are worth together, nor more than what is left of them,
/// once some are taken.
struct LinkPrices {
  std::vector<double> by_link;
  double bound_gbytes_per_s = 0;   ///< over all channels, of any speeds
  std::vector<double> by_route;    ///< what each pays; 1: it may be part of a best choice
  std::vector<double> use_gbytes;  ///< by route: how much of it a best choice of any speeds has
};

/// By linear programming. Where nothing bounds, there are no prices. What comes out is a bound even where
/// rounding or the limit of steps spoiled it.
LinkPrices priceLinks(const ChannelProblem& problem, const std::vector<Route>& routes);

}  // namespace tutti
