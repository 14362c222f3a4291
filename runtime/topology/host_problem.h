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

/// Form, places and ports only.
HostProblem placesOf(const TopologyPaths& paths, const std::vector<int>& seats, RouteForm form);

/// In the order of their names on the host: where the search is cut short, what it has found depends on the
/// order, which must not be that in which somebody listed the nodes.
void sortPlaces(HostProblem& host, const Topology& topology);

/// Adds the legs, of which there are as many as pairs of places and ports, and the links that some leg uses.
void addLegs(HostProblem& host, const TopologyPaths& paths, const SearchRules& rules);

}  // namespace tutti
