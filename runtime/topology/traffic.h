// What a collective makes each host send from where to where.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/core/types.h"
#include "runtime/topology/search.h"

namespace tutti {

/// As collectives/planner.cc picks for large messages: "single", "direct", "hierarchical", "ring".
std::string_view algorithmFor(Collective collective, const Cluster& cluster);

/// From a seat to a seat, or between a seat and a port; kNoNode: a port that was not seen.
struct Flow {
  int from = kNoNode;  ///< nodes
  int to = kNoNode;
  double amount = 0;  ///< in parts of the message: what *_perf calls its size
};

/// Of one host. The root is rank 0.
std::vector<Flow> flowsOf(Collective collective, const Cluster& cluster, const SearchResult& result,
                          const TopologyPaths& paths, std::size_t host);

}  // namespace tutti
