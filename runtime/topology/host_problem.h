// A host as the search sees it.
#pragma once

#include <vector>

#include "runtime/topology/channel_problem.h"
#include "runtime/topology/search.h"

namespace tutti {

/// Seats that share a node are one place: who is there already passes nothing on the way to his neighbour.
struct HostProblem {
  ChannelProblem problem;
  std::vector<std::vector<int>> seats;  ///< by place, ascending
};

/// Only links that some leg uses are in it.
HostProblem makeHostProblem(const TopologyPaths& paths, const std::vector<int>& seats, RouteForm form,
                            const SearchRules& rules);

}  // namespace tutti
