// What is looked at: hosts as they were seen or read, and what Tutti would make of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/topology/paths.h"
#include "runtime/topology/prediction.h"
#include "runtime/topology/search.h"

namespace tutti::topo {

struct NamedHost {
  std::string name;
  Topology topology;
};

/// Made once, then only read. Not to be copied: paths refer to the cluster's topologies.
struct Machine {
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine(Machine&&) = default;
  Machine& operator=(const Machine&) = delete;
  Machine& operator=(Machine&&) = default;
  ~Machine() = default;

  Cluster cluster;
  std::vector<TopologyPaths> paths;  ///< by shape
  SearchResult search;
  std::vector<PredictedBandwidth> bandwidths;
  std::vector<std::string> remarks;  ///< what of the graph file was left out

  const Topology& topologyOf(std::size_t shape) const { return *cluster.shapes[shape].topology; }
  /// The hosts of a shape, in their order.
  std::vector<const Cluster::Host*> hostsOf(std::size_t shape) const;
  std::size_t rankCount() const;
};

struct MachineOptions {
  SearchRules rules = {};
  int ranks_per_host = 0;      ///< 0: one per GPU; without GPUs one per NUMA node, but two at least
  HostMemoryCosts costs = {};  ///< of ranks in host memory, as measured
  std::string graph = {};  ///< NCCL's graph file, whose channels are taken instead of found ones; empty: none
};

/// Ranks are numbered host by host, seat by seat: the GPUs in the order of their numbers, or where there are
/// none the NUMA nodes, several ranks on one. Throws FileError, and std::invalid_argument for more ranks than
/// GPUs, and for a graph file and hosts of several shapes.
Machine makeMachine(std::vector<NamedHost> hosts, const MachineOptions& options = {});

/// Several hosts of one shape, by their names: "node0", "node0 and node1", "node0 to node15 (16 hosts)".
std::string namesOf(const std::vector<const Cluster::Host*>& hosts);

}  // namespace tutti::topo
