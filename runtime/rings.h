// From what a cluster is made of to the rings and lanes of a communicator on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/ring_orders.h"
#include "runtime/core/settings.h"
#include "runtime/topology/search.h"

namespace tutti {

/// NCCL_GRAPH_FILE, read before anything changes.
struct GraphFile {
  std::string name;  ///< empty: none
  std::string text;

  /// What ranks compare; 0: none.
  std::uint64_t hash() const;
};
/// Throws Error(ncclInvalidUsage) for a file that cannot be read.
GraphFile readGraphFile(const std::string& path);

/// Nothing runs on trees: they are for who looks at them, and for other programs.
enum class TreeUse : std::uint8_t { none, dumped };

/// The rings of a cluster: by a search, or those of a graph file. The same on all ranks, for equal arguments;
/// whether there are trees, too, changes nothing of them. Throws Error(ncclInvalidUsage) for a file that does
/// not fit the cluster.
SearchResult findRings(const Cluster& cluster, const TopologyRules& rules, const GraphFile& file,
                       TreeUse trees);

/// Where a rank sits: a node of its host's topology.
struct Seat {
  const Cluster::HostShape* shape;
  int node;
};
Seat seatOf(const Cluster& cluster, int rank);

/// What all channels together carry inside hosts and between them, in GB/s; 0: not known.
struct ChannelBandwidths {
  double inside = 0;
  double between = 0;
};
ChannelBandwidths bandwidthsOf(const SearchResult& found);

/// What ranks compare of it: orders and channels.
std::uint64_t digestOf(const SearchResult& found);

/// Lanes on GPUs that are left open: two for each channel, as NCCL does, within the rules and at most
/// kMostLanes.
std::uint32_t lanesFor(const SearchResult& found, const TopologyRules& rules);

RingTables ringTables(const SearchResult& found);

/// For the log, in the words that people know from NCCL: "Channel 00/02 : 0 1 2 3", and what limits.
std::vector<std::string> describeRings(const Cluster& cluster, const SearchResult& found);

/// Writes the host of `rank` as NCCL_GRAPH_FILE has it; trees were looked for. Returns why it could not be
/// written, or "".
std::string dumpRings(const Cluster& cluster, const SearchResult& found, int rank, const std::string& path);

}  // namespace tutti
