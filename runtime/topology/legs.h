// Which way data takes between two devices of a host under a person's rules, and what it loads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/topology/channel_problem.h"
#include "runtime/topology/search.h"

namespace tutti {

/// From a seat to a seat or to a port (a `net`), or back. Links are indices into paths.edges(). GPUs that are
/// too far from each other for p2p_level, or from a port for rdma_level, meet in the memory of the GPU's NUMA
/// node.
Leg legBetween(const TopologyPaths& paths, const SearchRules& rules, int from, int to);

/// Hosts with more ports than that are not searched for ways to other hosts: the first port is used.
inline constexpr std::size_t kMostSearchedPorts = 64;

/// What leaves the host: the RDMA ports, or where there are none the network interfaces.
std::vector<int> portsOf(const Topology& topology);

/// What a byte in each of some channels takes of each edge, by index into paths.edges().
struct ChannelUses {
  std::vector<double> inside;    ///< between seats
  std::vector<double> to_ports;  ///< between seats and ports
};
ChannelUses usesOf(const TopologyPaths& paths, const SearchRules& rules, const std::vector<int>& seats,
                   RouteForm form, const std::vector<HostChannel>& channels);

/// The form of a pattern's channels; `with_ports`: the cluster has several hosts.
RouteForm formOf(ChannelPattern pattern, bool with_ports);

/// "PCI link of GPU 3 (0000:3b:00.0)", "NVLinks from GPU 0 to GPU 1".
std::string describe(const Topology& topology, const Edge& edge);

}  // namespace tutti
