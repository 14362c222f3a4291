// How many channels of one speed fit: branch and bound over routes.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/topology/channel_problem.h"
#include "runtime/topology/cuts.h"
#include "runtime/topology/prices.h"
#include "runtime/topology/routes.h"

namespace tutti {

/// What all searches over some routes share.
struct PackingInput {
  const ChannelProblem& problem;
  const std::vector<Route>& routes;
  const std::vector<Cut>& cuts;
  LinkPrices prices;
  std::vector<int> order;  ///< indices of routes: the most promising first
};
PackingInput makePackingInput(const ChannelProblem& problem, const std::vector<Route>& routes,
                              const std::vector<Cut>& cuts);

/// No more channels of a speed fit, by the cuts and the prices.
std::size_t mostChannels(const PackingInput& input, double speed);

struct SlotChoice {
  std::vector<int> routes;  ///< empty: there are no more than `least`, or steps ran out
  std::uint64_t steps = 0;
  bool ran_out = false;
};
/// The most routes that fit, if more than `least`; `most` are enough. One may be chosen several times.
SlotChoice chooseRoutes(const PackingInput& input, double speed, std::size_t least, std::size_t most,
                        std::uint64_t most_steps);

}  // namespace tutti
