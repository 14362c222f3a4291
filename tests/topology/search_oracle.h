// What a search must hold to, worked out again from the paths alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/topology/search.h"

namespace tutti::test {

/// Bytes over each edge.
class Loads {
 public:
  Loads(const TopologyPaths& paths, const SearchRules& rules)
      : paths_(paths), rules_(rules), loads_(paths.edges().size()) {}

  /// GPUs too far from each other, or from a port, meet in the memory of the GPU's NUMA node.
  void send(int from, int to, double amount) {
    const Topology& topology = paths_.topology();
    const auto kind = [&topology](int node) { return topology.nodes[static_cast<std::size_t>(node)].kind; };
    const PathClass path_class = paths_.between(from, to).path_class;
    const bool has_gpu = kind(from) == TopologyKind::gpu || kind(to) == TopologyKind::gpu;
    const bool has_port = kind(from) == TopologyKind::net || kind(to) == TopologyKind::net;
    const bool has_cpu = kind(from) == TopologyKind::numa_node || kind(to) == TopologyKind::numa_node;
    if (has_gpu && !has_cpu && path_class > (has_port ? rules_.rdma_level : rules_.p2p_level)) {
      const int memory = topology.numaOf(kind(from) == TopologyKind::gpu ? from : to);
      direct(from, memory, amount);
      direct(memory, to, amount);
    } else {
      direct(from, to, amount);
    }
  }
  double operator[](std::size_t edge) const { return loads_[edge]; }

  /// The longest that an edge takes, with so many bytes.
  double seconds() const {
    double longest = 0;
    for (std::size_t e = 0; e < loads_.size(); ++e) {
      longest = std::max(longest, loads_[e] / paths_.edges()[e].gbytes_per_s);
    }
    return longest;
  }

 private:
  void direct(int from, int to, double amount) {
    const Path& path = paths_.between(from, to);
    for (const int edge : path.edges) {
      const auto e = static_cast<std::size_t>(edge);
      loads_[e] += amount * (paths_.edges()[e].kind == Edge::Kind::pci ? path.pci_load : 1);
    }
  }

  const TopologyPaths& paths_;
  SearchRules rules_;
  std::vector<double> loads_;
};

/// A ring's leg carries the channel's speed one way, a tree's half of it each way.
inline void addChannel(Loads& loads, const std::vector<int>& seats, ChannelPattern pattern,
                       const HostChannel& channel, double intra, double inter) {
  const bool is_ring = pattern == ChannelPattern::ring;
  const auto node = [&](std::size_t i) { return seats[static_cast<std::size_t>(channel.order[i])]; };
  const std::size_t n = channel.order.size();
  for (std::size_t i = 0; i + 1 < n; ++i) {
    loads.send(node(i), node(i + 1), is_ring ? intra : intra / 2);
    if (!is_ring) loads.send(node(i + 1), node(i), intra / 2);
  }
  if (channel.net_in != kNoNode) {
    loads.send(channel.net_in, node(0), inter);
    loads.send(node(is_ring ? n - 1 : 0), channel.net_out, inter);
  } else if (is_ring) {
    loads.send(node(n - 1), node(0), intra);
  }
}

inline Loads loadsOf(const TopologyPaths& paths, const std::vector<int>& seats, const ChannelGraph& graph,
                     const SearchRules& rules = {}) {
  Loads loads(paths, rules);
  for (const HostChannel& channel : graph.channels) {
    addChannel(loads, seats, graph.pattern, channel, graph.intra_gbytes_per_s, graph.inter_gbytes_per_s);
  }
  return loads;
}

inline bool holdsEachOnce(std::vector<int> order, std::size_t count) {
  std::ranges::sort(order);
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

inline double totalOf(const ChannelGraph& graph) {
  return static_cast<double>(graph.channels.size()) *
         std::min(graph.intra_gbytes_per_s, graph.inter_gbytes_per_s);
}

/// The most that up to `channels` channels of one speed carry in all, over every choice of orders and ports.
/// Ports may not be crossed.
inline double exhaustiveTotal(const TopologyPaths& paths, const std::vector<int>& seats,
                              ChannelPattern pattern, const std::vector<int>& ports, int channels) {
  std::vector<HostChannel> all;
  std::vector<int> order(seats.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    if (ports.empty() && pattern == ChannelPattern::ring && order.front() != 0) break;
    if (ports.empty()) all.push_back({kNoNode, kNoNode, order});
    for (const int port : ports) all.push_back({port, port, order});
  } while (std::ranges::next_permutation(order).found);
  std::vector<Loads> each;
  for (const HostChannel& channel : all) {
    each.emplace_back(paths, SearchRules{});
    addChannel(each.back(), seats, pattern, channel, 1, 1);
  }
  double best = 0;
  std::vector<double> sum(paths.edges().size());
  const auto speed = [&] {
    double seconds = 0;
    for (std::size_t e = 0; e < sum.size(); ++e) {
      seconds = std::max(seconds, sum[e] / paths.edges()[e].gbytes_per_s);
    }
    return 1 / seconds;
  };
  const std::function<void(std::size_t, int)> choose = [&](std::size_t first, int count) {
    if (count > 0) best = std::max(best, count * speed());
    if (count == channels) return;
    for (std::size_t r = first; r < each.size(); ++r) {
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += each[r][e];
      choose(r, count + 1);
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] -= each[r][e];
    }
  };
  choose(0, 0);
  return best;
}

/// `count` hosts of one shape, whose ranks are numbered host by host.
inline Cluster clusterOf(const Topology& topology, TopologyKind seats, int count) {
  Cluster cluster;
  cluster.shapes.push_back({std::make_shared<Topology>(topology), topology.all(seats), {}});
  int rank = 0;
  for (int h = 0; h < count; ++h) {
    Cluster::Host host{"node" + std::to_string(h), 0, std::vector<int>(cluster.shapes[0].seats.size())};
    std::iota(host.ranks.begin(), host.ranks.end(), rank);
    rank += static_cast<int>(host.ranks.size());
    cluster.hosts.push_back(std::move(host));
  }
  return cluster;
}

}  // namespace tutti::test
