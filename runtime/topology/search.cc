#include "runtime/topology/search.h"

#include <algorithm>
#include <limits>

#include "runtime/topology/double_tree.h"
#include "runtime/topology/rails.h"
#include "runtime/topology/reasons.h"

namespace tutti {
namespace {

double speedOf(const ChannelGraph& graph) {
  return std::min(graph.intra_gbytes_per_s, graph.inter_gbytes_per_s);
}

/// Seats that share a node follow each other; among them those that share a cache do.
void orderByCache(ChannelGraph& graph, const Cluster::HostShape& shape) {
  if (shape.caches.size() != shape.seats.size()) return;
  const auto node = [&shape](int seat) { return shape.seats[static_cast<std::size_t>(seat)]; };
  const auto cache = [&shape](int seat) { return shape.caches[static_cast<std::size_t>(seat)]; };
  for (HostChannel& channel : graph.channels) {
    auto begin = channel.order.begin();
    while (begin != channel.order.end()) {
      const auto end =
          std::find_if(begin, channel.order.end(), [&](int seat) { return node(seat) != node(*begin); });
      std::stable_sort(begin, end, [&cache](int a, int b) { return cache(a) < cache(b); });
      begin = end;
    }
  }
}

std::size_t fewestChannels(const std::vector<ChannelGraph>& rings) {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const ChannelGraph& graph : rings) fewest = std::min(fewest, graph.channels.size());
  return fewest;
}

/// Every channel passes through every host: as many as the host with fewest has. The others look again for
/// faster ones.
void agreeOnChannels(const Cluster& cluster, SearchRules rules, std::vector<ChannelGraph>& rings) {
  rules.most_channels = static_cast<int>(fewestChannels(rings));
  const auto fewest = static_cast<std::size_t>(rules.most_channels);
  for (std::size_t s = 0; s < rings.size(); ++s) {
    if (rings[s].channels.size() == fewest) continue;
    const Cluster::HostShape& shape = cluster.shapes[s];
    ChannelGraph again = searchHost(TopologyPaths(*shape.topology), shape.seats, ChannelPattern::ring, rules,
                                    static_cast<int>(cluster.hosts.size()));
    if (again.channels.size() == fewest && speedOf(again) > speedOf(rings[s])) rings[s] = std::move(again);
  }
}

class HostJoiner {
 public:
  HostJoiner(const Cluster& cluster, const SearchRules& rules) : cluster_(cluster) {
    result_.rules = rules;
    paths_.reserve(cluster.shapes.size());
    for (const Cluster::HostShape& shape : cluster.shapes) paths_.emplace_back(*shape.topology);
  }

  SearchResult join(std::vector<ChannelGraph> rings, std::vector<ChannelGraph> trees) {
    result_.rings = std::move(rings);
    result_.trees = std::move(trees);
    alignRails(cluster_, result_.rings);
    for (std::size_t s = 0; s < cluster_.shapes.size(); ++s) {
      orderByCache(result_.rings[s], cluster_.shapes[s]);
      if (!result_.trees.empty()) orderByCache(result_.trees[s], cluster_.shapes[s]);
    }
    compose();
    result_.reasons = reasonsOf(cluster_, paths_, result_);
    return std::move(result_);
  }

 private:
  void compose() {
    result_.intra_gbytes_per_s = result_.inter_gbytes_per_s = std::numeric_limits<double>::max();
    for (const ChannelGraph& graph : result_.rings) {
      result_.intra_gbytes_per_s = std::min(result_.intra_gbytes_per_s, graph.intra_gbytes_per_s);
      result_.inter_gbytes_per_s = std::min(result_.inter_gbytes_per_s, graph.inter_gbytes_per_s);
    }
    const std::vector<bool> backwards = hostsWalkedBackwards(cluster_, paths_, result_.rings, result_.rules);
    for (std::size_t c = 0; c < result_.rings.front().channels.size(); ++c) {
      ClusterChannel channel;
      for (std::size_t h = 0; h < cluster_.hosts.size(); ++h) {
        const Cluster::Host& host = cluster_.hosts[h];
        std::vector<int> ranks = ranksOf(host, result_.rings[host.shape].channels[c]);
        if (backwards[h]) std::ranges::reverse(ranks);
        channel.ring.insert(channel.ring.end(), ranks.begin(), ranks.end());
      }
      if (!result_.trees.empty()) composeTrees(c, channel);
      result_.channels.push_back(std::move(channel));
    }
  }

  static std::vector<int> ranksOf(const Cluster::Host& host, const HostChannel& channel) {
    std::vector<int> ranks;
    for (const int seat : channel.order) ranks.push_back(host.ranks[static_cast<std::size_t>(seat)]);
    return ranks;
  }

  /// Trees over the hosts' first ranks, of which each heads the chain of its host.
  void composeTrees(std::size_t c, ClusterChannel& channel) const {
    const auto over_hosts = doubleTree(static_cast<int>(cluster_.hosts.size()));
    std::vector<std::vector<int>> chains;
    for (const Cluster::Host& host : cluster_.hosts) {
      const std::vector<HostChannel>& channels = result_.trees[host.shape].channels;
      chains.push_back(ranksOf(host, channels[c % channels.size()]));
    }
    const auto head = [&chains](int host) { return chains[static_cast<std::size_t>(host)].front(); };
    for (std::size_t t = 0; t < over_hosts.size(); ++t) {
      std::vector<TreePlace>& tree = channel.trees[t];
      tree.resize(channel.ring.size());
      const auto place = [&tree](int rank) -> TreePlace& { return tree[static_cast<std::size_t>(rank)]; };
      for (std::size_t h = 0; h < chains.size(); ++h) {
        const TreePlace& host = over_hosts[t][h];
        TreePlace& first = place(chains[h].front());
        if (host.up >= 0) first.up = head(host.up);
        for (const int down : host.down) first.down.push_back(head(down));
        for (std::size_t i = 1; i < chains[h].size(); ++i) {
          place(chains[h][i]).up = chains[h][i - 1];
          place(chains[h][i - 1]).down.push_back(chains[h][i]);
        }
      }
    }
  }

  const Cluster& cluster_;
  std::vector<TopologyPaths> paths_;  ///< by shape
  SearchResult result_;
};

}  // namespace

const Cluster::Host& Cluster::hostOf(int rank) const {
  return *std::ranges::find_if(
      hosts, [rank](const Host& host) { return std::ranges::find(host.ranks, rank) != host.ranks.end(); });
}

int portAt(const HostChannel& channel, int seat, bool leaves) {
  const bool is_short = channel.order.size() == 1;
  if (leaves) return seat == channel.order.front() && !is_short ? channel.net_in : channel.net_out;
  return seat == channel.order.back() && !is_short ? channel.net_out : channel.net_in;
}

SearchResult joinHosts(const Cluster& cluster, const SearchRules& rules, std::vector<ChannelGraph> rings,
                       std::vector<ChannelGraph> trees) {
  return HostJoiner(cluster, rules).join(std::move(rings), std::move(trees));
}

SearchResult searchCluster(const Cluster& cluster, const SearchRules& rules) {
  std::vector<ChannelGraph> rings;
  std::vector<ChannelGraph> trees;
  const int hosts = static_cast<int>(cluster.hosts.size());
  for (const Cluster::HostShape& shape : cluster.shapes) {
    const TopologyPaths paths(*shape.topology);
    rings.push_back(searchHost(paths, shape.seats, ChannelPattern::ring, rules, hosts));
    if (rules.with_trees) trees.push_back(searchHost(paths, shape.seats, ChannelPattern::tree, rules, hosts));
  }
  agreeOnChannels(cluster, rules, rings);
  return joinHosts(cluster, rules, std::move(rings), std::move(trees));
}

}  // namespace tutti
