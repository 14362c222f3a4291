// Which rings and trees use a cluster's links best. Pure and deterministic: every rank finds the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/topology.h"
#include "runtime/core/topology_rules.h"
#include "runtime/topology/paths.h"

namespace tutti {

/// Hosts, many of which are alike: each shape is held, and searched, once.
struct Cluster {
  struct Host {
    std::string name;
    std::size_t shape = 0;
    std::vector<int> ranks;  ///< by seat: see HostShape::seats
  };
  /// A host without what is its alone (names, GUIDs).
  struct HostShape {
    std::shared_ptr<const Topology> topology;
    /// Where ranks sit: GPUs, or NUMA nodes (then several ranks may sit on one).
    std::vector<int> seats;
    /// By seat: a number of the last-level cache that the rank's cores share, so that neighbours of the ring
    /// may share it. Empty: unknown.
    std::vector<int> caches;
  };
  std::vector<HostShape> shapes;
  std::vector<Host> hosts;

  /// The host that the rank is on, which is one of them.
  const Host& hostOf(int rank) const;
};

/// NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL, NCCL_CROSS_NIC and NCCL_MAX_NCHANNELS.
struct SearchRules {
  using CrossNic = TopologyRules::CrossNic;
  PathClass p2p_level = PathClass::sys;      ///< between GPUs, the worst class that goes directly
  PathClass rdma_level = PathClass::sys;     ///< from a NIC to a GPU, the same; as far as the library goes
  CrossNic cross_nic = CrossNic::automatic;  ///< may a ring leave a host by another NIC than it came in by
  int most_channels = 32;
  bool with_trees = true;  ///< false: rings only
};

enum class ChannelPattern : std::uint8_t {
  balanced_tree = 1,
  split_tree = 2,
  tree = 3,
  ring = 4
};  ///< NCCL's numbers

/// One channel inside one host: in by a NIC, along the seats, out by a NIC.
struct HostChannel {
  int net_in = kNoNode;  ///< nodes; kNoNode: the cluster is one host, or there is no NIC
  int net_out = kNoNode;
  std::vector<int> order;  ///< seats

  friend bool operator==(const HostChannel&, const HostChannel&) = default;
};

/// The port (a `net`) at a seat where data of the channel's ring leaves the host, or arrives there. A host
/// that is walked backwards is left by what is called net_in.
int portAt(const HostChannel& channel, int seat, bool leaves);

/// What was found for one host's shape and one pattern; what a graph file holds (graph_xml.h).
struct ChannelGraph {
  ChannelPattern pattern = ChannelPattern::ring;
  std::vector<HostChannel> channels = {};
  double intra_gbytes_per_s = 0;           ///< of each channel inside the host
  double inter_gbytes_per_s = 0;           ///< of each channel to other hosts
  PathClass intra_class = PathClass::dis;  ///< the worst between seats
  PathClass inter_class = PathClass::dis;  ///< the worst to a NIC
  bool crosses_nics = false;
  bool same_channels = true;   ///< all channels in one order
  bool was_cut_short = false;  ///< the search used up its steps: there may be better

  friend bool operator==(const ChannelGraph&, const ChannelGraph&) = default;
};

/// A double binary tree's part at one rank; -1: none.
struct TreePlace {
  int up = -1;
  std::vector<int> down;

  friend bool operator==(const TreePlace&, const TreePlace&) = default;
};

/// One channel of the whole cluster.
struct ClusterChannel {
  std::vector<int> ring;            ///< ranks in the order data travels
  std::vector<TreePlace> trees[2];  ///< by rank: the two trees of the double binary tree; empty: none
};

struct SearchResult {
  std::vector<ChannelGraph> rings;       ///< by shape, as found
  std::vector<ChannelGraph> trees;       ///< the same; empty: not looked for
  std::vector<ClusterChannel> channels;  ///< the fewest over shapes
  double intra_gbytes_per_s = 0;         ///< per channel, the least over shapes
  double inter_gbytes_per_s = 0;
  SearchRules rules;                 ///< what it was found under
  std::vector<std::string> reasons;  ///< in words: what limits, what was relaxed and why
};

/// Hosts with ranks in more places than that keep the order of the seats, at what its links carry.
inline constexpr std::size_t kMostSearchedPlaces = 64;

/// The best that was found of one pattern for one host. `hosts`: how many there are; on one, no NIC is used.
ChannelGraph searchHost(const TopologyPaths& paths, const std::vector<int>& seats, ChannelPattern pattern,
                        const SearchRules& rules, int hosts);

/// Never throws for a valid cluster: where there is no way, the order of the seats at 0.1 GB/s, as NCCL does.
SearchResult searchCluster(const Cluster& cluster, const SearchRules& rules);

/// The second half of it: from what was found for each shape, or read from a graph file, to channels through
/// all hosts: as many as the shape with fewest has. At least one of each pattern and shape, but trees may be
/// left out altogether; every order holds each seat once.
SearchResult joinHosts(const Cluster& cluster, const SearchRules& rules, std::vector<ChannelGraph> rings,
                       std::vector<ChannelGraph> trees);

}  // namespace tutti
