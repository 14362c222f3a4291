// Rings and trees through several hosts.
#include <gtest/gtest.h>

#include <ctime>
#include <future>
#include <iostream>
#include <set>

#include "runtime/topology/double_tree.h"
#include "runtime/topology/rails.h"
#include "tests/topology/builders.h"
#include "tests/topology/search_oracle.h"

namespace tutti {
namespace {

using test::clusterOf;

std::size_t rankCount(const Cluster& cluster) {
  std::size_t count = 0;
  for (const Cluster::Host& host : cluster.hosts) count += host.ranks.size();
  return count;
}

std::size_t hostOf(const Cluster& cluster, int rank) {
  std::size_t host = 0;
  while (std::ranges::find(cluster.hosts[host].ranks, rank) == cluster.hosts[host].ranks.end()) ++host;
  return host;
}

/// One root, from which every node is reached once, and both ends of each connection know of it.
void expectTree(const std::vector<TreePlace>& tree) {
  std::vector<int> roots;
  std::size_t connections = 0;
  for (std::size_t n = 0; n < tree.size(); ++n) {
    if (tree[n].up < 0) roots.push_back(static_cast<int>(n));
    connections += tree[n].down.size();
    for (const int down : tree[n].down)
      EXPECT_EQ(tree[static_cast<std::size_t>(down)].up, static_cast<int>(n));
  }
  ASSERT_EQ(roots.size(), 1u);
  EXPECT_EQ(connections, tree.size() - 1);
  std::set<int> reached;
  std::vector<int> next = roots;
  while (!next.empty()) {
    const int node = next.back();
    next.pop_back();
    ASSERT_TRUE(reached.insert(node).second);
    const std::vector<int>& down = tree[static_cast<std::size_t>(node)].down;
    next.insert(next.end(), down.begin(), down.end());
  }
  EXPECT_EQ(reached.size(), tree.size());
}

int depthOf(const std::vector<TreePlace>& tree) {
  int deepest = 0;
  for (std::size_t n = 0; n < tree.size(); ++n) {
    int depth = 0;
    for (int up = tree[n].up; up >= 0; up = tree[static_cast<std::size_t>(up)].up) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

/// Each ring passes through every rank once and through every host in one piece; each tree holds all ranks.
void expectValid(const Cluster& cluster, const SearchResult& result) {
  const std::size_t ranks = rankCount(cluster);
  ASSERT_FALSE(result.channels.empty());
  for (const ClusterChannel& channel : result.channels) {
    EXPECT_TRUE(test::holdsEachOnce(channel.ring, ranks));
    std::size_t changes = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
      changes += hostOf(cluster, channel.ring[i]) != hostOf(cluster, channel.ring[(i + 1) % ranks]) ? 1 : 0;
    }
    EXPECT_EQ(changes, cluster.hosts.size() == 1 ? 0 : cluster.hosts.size());
    for (const std::vector<TreePlace>& tree : channel.trees) {
      ASSERT_EQ(tree.size(), ranks);
      expectTree(tree);
    }
  }
  for (std::size_t s = 0; s < cluster.shapes.size(); ++s) {
    EXPECT_EQ(result.rings[s].channels.size(), result.channels.size());
    const TopologyPaths paths(*cluster.shapes[s].topology);
    ChannelGraph graph = result.rings[s];
    EXPECT_LE(test::loadsOf(paths, cluster.shapes[s].seats, graph, result.rules).seconds(), 1 + 1e-6);
  }
}

TEST(DoubleTree, NobodyHasChildrenInBothTrees) {
  for (int count = 1; count <= 130; ++count) {
    const auto trees = doubleTree(count);
    int depth = 0;
    while ((2 << depth) <= count) ++depth;  // floor of the binary logarithm
    for (const std::vector<TreePlace>& tree : trees) {
      expectTree(tree);
      EXPECT_LE(depthOf(tree), depth + 1);
      for (const TreePlace& place : tree) EXPECT_LE(place.down.size(), 2u);
    }
    for (std::size_t n = 0; n < trees[0].size(); ++n) {
      EXPECT_TRUE(trees[0][n].down.empty() || trees[1][n].down.empty()) << n << " of " << count;
    }
  }
}

// The picture of double_tree.h.
TEST(DoubleTree, OfSixAndSeven) {
  const auto six = doubleTree(6);
  EXPECT_EQ(six[0], (std::vector<TreePlace>{{1, {}}, {3, {0, 2}}, {1, {}}, {-1, {1, 5}}, {5, {}}, {3, {4}}}));
  EXPECT_EQ(six[1][0], (TreePlace{2, {1}}));
  EXPECT_EQ(six[1][4], (TreePlace{2, {5, 3}}));
  const auto seven = doubleTree(7);
  EXPECT_EQ(seven[0][5], (TreePlace{3, {4, 6}}));
  EXPECT_EQ(seven[1][0], (TreePlace{2, {6, 1}}));
  EXPECT_EQ(seven[1][2], (TreePlace{-1, {0, 4}}));
}

TEST(ClusterSearch, EveryRankOncePerRingAndTree) {
  for (const int hosts : {1, 2, 3, 5}) {
    for (const Topology& topology :
         {test::dgxLike(), test::nvlinkMesh4(), test::cubeMesh8(), test::pcieOnly4()}) {
      const Cluster cluster = clusterOf(topology, TopologyKind::gpu, hosts);
      expectValid(cluster, searchCluster(cluster, {}));
    }
    const Cluster laptops = clusterOf(test::laptop(), TopologyKind::numa_node, hosts);
    expectValid(laptops, searchCluster(laptops, {}));
  }
}

TEST(ClusterSearch, RanksNeedNotBeNumberedByHosts) {
  Cluster cluster = clusterOf(test::nvlinkMesh4(), TopologyKind::gpu, 2);
  cluster.hosts[0].ranks = {6, 0, 4, 2};
  cluster.hosts[1].ranks = {1, 7, 3, 5};
  expectValid(cluster, searchCluster(cluster, {}));
}

TEST(ClusterSearch, RanksThatShareACacheAreNeighbours) {
  Cluster cluster = clusterOf(test::laptop(), TopologyKind::numa_node, 1);
  cluster.shapes[0].seats = std::vector<int>(6, cluster.shapes[0].seats[0]);
  cluster.shapes[0].caches = {1, 0, 1, 0, 2, 1};
  cluster.hosts[0].ranks = {0, 1, 2, 3, 4, 5};
  const SearchResult result = searchCluster(cluster, {});
  EXPECT_EQ(result.channels.at(0).ring, std::vector<int>({1, 3, 0, 2, 5, 4}));
}

TEST(ClusterSearch, CachesOrderRanksInsideTheirNodeOnly) {
  Cluster cluster = clusterOf(test::pcieOnly4(), TopologyKind::numa_node, 1);
  const std::vector<int> numa = cluster.shapes[0].seats;
  cluster.shapes[0].seats = {numa[0], numa[1], numa[0], numa[1], numa[0], numa[1]};
  cluster.shapes[0].caches = {5, 4, 1, 3, 5, 2};
  cluster.hosts[0].ranks = {0, 1, 2, 3, 4, 5};
  const SearchResult result = searchCluster(cluster, {});
  EXPECT_EQ(result.channels.at(0).ring, std::vector<int>({2, 0, 4, 5, 3, 1}));
}

Topology withoutFirstCard(Topology topology) {
  const int port = topology.all(TopologyKind::net).front();
  const int card = topology.nodes[static_cast<std::size_t>(port)].parent;
  EXPECT_EQ(port, card + 1);
  topology.nodes.erase(topology.nodes.begin() + card, topology.nodes.begin() + port + 1);
  for (NvLinks& links : topology.nvlinks) {
    for (int* end : {&links.from, &links.to}) *end -= *end > card ? 2 : 0;
  }
  for (TopologyNode& node : topology.nodes) node.parent -= node.parent > card ? 2 : 0;
  return topology;
}

// Seven ports each: the hosts with eight give one up, the first, which the other lacks.
TEST(ClusterSearch, HostsOfDifferentShapesAgree) {
  Cluster cluster = clusterOf(test::dgxLike(), TopologyKind::gpu, 3);
  const auto broken = std::make_shared<Topology>(withoutFirstCard(test::dgxLike()));
  cluster.shapes.push_back({broken, broken->all(TopologyKind::gpu), {}});
  cluster.hosts[1].shape = 1;
  const SearchResult result = searchCluster(cluster, {});
  expectValid(cluster, result);
  const double total = static_cast<double>(result.channels.size()) *
                       std::min(result.intra_gbytes_per_s, result.inter_gbytes_per_s);
  EXPECT_NEAR(total, 7 * 24, 1e-6);
  const auto rails = railsOf(cluster);
  for (std::size_t c = 0; c < result.channels.size(); ++c) {
    const auto rail = [&](std::size_t shape) {
      return rails[shape][static_cast<std::size_t>(result.rings[shape].channels[c].net_in)];
    };
    EXPECT_EQ(rail(0), rail(1)) << "channel " << c;
    EXPECT_NE(rail(0), 0);
  }
}

// Channels that cross: the second host is walked backwards, so that what leaves by one rail arrives by it.
TEST(ClusterSearch, CrossingChannelsKeepToRails) {
  test::HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    const int bridge = host.bridge(host.numaNode("GenuineIntel", 6, 79), test::kGen3x16);
    host.gpu(bridge, test::kGen3x16, 70);
    host.nic(bridge, test::kGen3x16, 100000);
  }
  const Cluster cluster = clusterOf(host.topology, TopologyKind::gpu, 2);
  const SearchResult result = searchCluster(cluster, {});
  expectValid(cluster, result);
  ASSERT_TRUE(result.rings[0].crosses_nics);
  for (const ClusterChannel& channel : result.channels) {
    // GPU g and port g share a socket: who sends to the next host is at the same rail as who receives.
    EXPECT_EQ(channel.ring[1] % 2, channel.ring[2] % 2);
    EXPECT_EQ(channel.ring[3] % 2, channel.ring[0] % 2);
  }
}

TEST(ClusterSearch, OrderOfHostsChangesNoTotal) {
  Cluster cluster = clusterOf(test::dgxLike(), TopologyKind::gpu, 2);
  const auto mesh = std::make_shared<Topology>(test::nvlinkMesh4());
  cluster.shapes.push_back({mesh, mesh->all(TopologyKind::gpu), {}});
  cluster.hosts.push_back({"mesh", 1, {16, 17, 18, 19}});
  const SearchResult before = searchCluster(cluster, {});
  std::swap(cluster.hosts[0], cluster.hosts[2]);
  std::swap(cluster.shapes[0], cluster.shapes[1]);
  for (Cluster::Host& host : cluster.hosts) host.shape = 1 - host.shape;
  const SearchResult after = searchCluster(cluster, {});
  expectValid(cluster, after);
  EXPECT_EQ(before.channels.size(), after.channels.size());
  EXPECT_NEAR(before.inter_gbytes_per_s, after.inter_gbytes_per_s, 1e-6);
  EXPECT_NEAR(before.intra_gbytes_per_s, after.intra_gbytes_per_s, 1e-6);
}

TEST(ClusterSearch, HostsWithoutNicsAreJoinedAllTheSame) {
  test::HostBuilder host;
  const int numa = host.numaNode("AuthenticAMD", 25, 1);
  for (int i = 0; i < 2; ++i) host.gpu(numa, test::kGen4x16, 80);
  const Cluster cluster = clusterOf(host.topology, TopologyKind::gpu, 3);
  const SearchResult result = searchCluster(cluster, {});
  expectValid(cluster, result);
  EXPECT_NEAR(result.inter_gbytes_per_s, 1.25, 1e-6);  // 10 Gbit/s
  EXPECT_EQ(result.rings[0].channels[0].net_in, kNoNode);
}

// What a graph file says is taken as it is.
TEST(ClusterSearch, GivenGraphsAreJoined) {
  const Cluster cluster = clusterOf(test::nvlinkMesh4(), TopologyKind::gpu, 1);
  const ChannelGraph ring{.channels = {{kNoNode, kNoNode, {0, 2, 1, 3}}, {kNoNode, kNoNode, {3, 2, 1, 0}}},
                          .intra_gbytes_per_s = 7,
                          .inter_gbytes_per_s = 7};
  const ChannelGraph tree{.pattern = ChannelPattern::tree,
                          .channels = {{kNoNode, kNoNode, {3, 1, 2, 0}}},
                          .intra_gbytes_per_s = 7};
  const SearchResult result = joinHosts(cluster, {}, {ring}, {tree});
  expectValid(cluster, result);
  EXPECT_EQ(result.channels[0].ring, std::vector<int>({0, 2, 1, 3}));
  EXPECT_EQ(result.channels[1].ring, std::vector<int>({3, 2, 1, 0}));
  EXPECT_EQ(result.channels[1].trees[0][1], (TreePlace{3, {2}}));
  EXPECT_NEAR(result.intra_gbytes_per_s, 7, 1e-9);
}

TEST(ClusterSearch, AllRanksFindTheSame) {
  const Cluster cluster = clusterOf(test::dgxLike(), TopologyKind::gpu, 4);
  const auto found = [&cluster] {
    const SearchResult result = searchCluster(cluster, {});
    std::vector<std::vector<int>> rings;
    for (const ClusterChannel& channel : result.channels) rings.push_back(channel.ring);
    return std::pair(rings, result.reasons);
  };
  auto here = found();
  std::vector<std::future<decltype(here)>> there;
  there.reserve(3);
  for (int i = 0; i < 3; ++i) there.push_back(std::async(std::launch::async, found));
  for (auto& result : there) EXPECT_EQ(result.get(), here);
}

// A thousand hosts of one shape are searched once.
TEST(ClusterSearch, ManyEqualHosts) {
  test::HostBuilder host;
  const int bridge = host.bridge(host.numaNode("AuthenticAMD", 25, 1), test::kGen4x16);
  host.gpu(bridge, test::kGen4x16, 80);
  host.nic(bridge, test::kGen4x16, 200000);
  const Cluster cluster = clusterOf(host.topology, TopologyKind::gpu, 1000);
  const std::clock_t begin = std::clock();
  const SearchResult result = searchCluster(cluster, {});
  std::cout << "1000 hosts: " << 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC << " ms\n";
  ASSERT_EQ(result.channels.size(), 1u);
  EXPECT_TRUE(test::holdsEachOnce(result.channels[0].ring, 1000));
  EXPECT_NEAR(result.inter_gbytes_per_s, 24, 1e-6);
  EXPECT_EQ(result.reasons.size(), 1u);
  expectTree(result.channels[0].trees[0]);
  expectTree(result.channels[0].trees[1]);
}

TEST(ClusterSearch, ReasonsNameTheLimit) {
  const Cluster cluster = clusterOf(test::pcieOnly4(), TopologyKind::gpu, 2);
  const std::vector<std::string> reasons = searchCluster(cluster, {}).reasons;
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(
      reasons[0],
      "node0 and 1 more like it: 1 channel of 10 GB/s, SYS inside, PIX to NICs; limited by the PCI link "
      "to PCI bridge (0000:01:00.0), 12 GB/s, used 1.2 times");
  const SearchResult mesh = searchCluster(clusterOf(test::cubeMesh8(), TopologyKind::gpu, 1), {});
  EXPECT_TRUE(mesh.reasons.at(0).ends_with(", used once")) << mesh.reasons[0];
}

// NVLinks would let more through than the port, whose PCI link stands at 24 GB/s for two channels of 12.
TEST(ClusterSearch, ReasonsNameThePortWhereItIsSlower) {
  Topology mesh = test::nvlinkMesh4();
  mesh.nodes[static_cast<std::size_t>(mesh.all(TopologyKind::net).front())].net.mbits_per_s = 40000;
  const SearchResult result = searchCluster(clusterOf(mesh, TopologyKind::gpu, 2), {});
  EXPECT_GT(result.intra_gbytes_per_s, result.inter_gbytes_per_s);
  EXPECT_NE(result.reasons.at(0).find("limited by the port mlx5_0:1"), std::string::npos)
      << result.reasons[0];
}

TEST(ClusterSearch, ReasonsSayThatTheNicIsAGuess) {
  test::HostBuilder host;
  const int numa = host.numaNode("AuthenticAMD", 25, 1);
  for (int i = 0; i < 2; ++i) host.gpu(numa, test::kGen4x16, 80);
  const SearchResult result = searchCluster(clusterOf(host.topology, TopologyKind::gpu, 2), {});
  EXPECT_NE(result.reasons.at(0).find("limited by a NIC that was not seen"), std::string::npos)
      << result.reasons[0];
}

// Two rings over the same way between sockets, of 10 GB/s: 12 each are 2.4 times as much.
TEST(ClusterSearch, SpeedsThatLinksDoNotCarryAreTold) {
  const Cluster cluster = clusterOf(test::pcieOnly4(), TopologyKind::gpu, 1);
  const ChannelGraph tree{.pattern = ChannelPattern::tree, .channels = {{kNoNode, kNoNode, {0, 1, 2, 3}}}};
  const auto excess = [&](double speed) {
    const ChannelGraph ring{.channels = {2, {kNoNode, kNoNode, {0, 1, 2, 3}}},
                            .intra_gbytes_per_s = speed,
                            .inter_gbytes_per_s = speed};
    const SearchResult result = joinHosts(cluster, {}, {ring}, {tree});
    const auto it = std::ranges::find_if(result.reasons, [](const std::string& reason) {
      return reason.find("the graph file says") != std::string::npos;
    });
    return it == result.reasons.end() ? "" : *it;
  };
  EXPECT_EQ(excess(5), "");
  EXPECT_NE(excess(12).find("says 12 GB/s per channel; the links carry 5: the "), std::string::npos)
      << excess(12);
}

TEST(ClusterSearch, ReasonsTellOfHostMemoryOnTheWay) {
  const Cluster cluster = clusterOf(test::nvlinkMesh4(), TopologyKind::gpu, 2);  // the port is at PHB
  const auto tells = [&cluster](PathClass level) {
    const SearchResult result = searchCluster(cluster, {.rdma_level = level});
    return std::ranges::any_of(result.reasons, [](const std::string& reason) {
      return reason.find("data passes through host memory") != std::string::npos;
    });
  };
  EXPECT_TRUE(tells(PathClass::pxb));
  EXPECT_FALSE(tells(PathClass::phb));
}

}  // namespace
}  // namespace tutti
