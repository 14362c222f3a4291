// What the topology says of RDMA ports: which of them carry the rings, and how far they are.
#pragma once

#include <vector>

#include "runtime/topology/search.h"
#include "transports/rdma.h"

namespace tutti {

/// By which ports a rank's part of the rings leaves and enters its host; empty where the search knows of
/// none.
std::vector<RingPort> ringPortsOf(const Cluster& cluster, const SearchResult& found, int rank);

/// How far the RDMA ports of its host are from a rank.
std::vector<RdmaPlace> rdmaPlacesOf(const Cluster& cluster, int rank);

}  // namespace tutti
