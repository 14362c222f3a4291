// Where the ranks of a host sit in it.
#pragma once

#include <memory>
#include <vector>

#include "runtime/core/peer.h"
#include "runtime/topology/search.h"

namespace tutti {

/// Ranks on GPUs sit at them. Others sit at the NUMA node whose CPUs they may run on; those that may run on
/// several are dealt to these in blocks, in order, for the order in rings: it binds nobody. A function of its
/// arguments: equal on all ranks. Throws Error for a GPU that the topology lacks.
Cluster::HostShape seatsOf(std::shared_ptr<const Topology> topology, const std::vector<int>& ranks,
                           const std::vector<PeerInfo>& peers);

}  // namespace tutti
