// What the search finds does not depend on the order in which somebody listed what a host is made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <random>
#include <vector>

#include "tests/topology/builders.h"
#include "tests/topology/search_oracle.h"

namespace tutti {
namespace {

using test::totalOf;

ChannelGraph search(const Topology& topology, const std::vector<int>& seats) {
  return searchHost(TopologyPaths(topology), seats, ChannelPattern::ring, {}, 2);
}

/// Eight GPUs and eight NICs anywhere below four sockets, at links of different speeds: too many ways for the
/// search to try them all.
Topology unevenHost(std::mt19937& random) {
  const auto pick = [&random](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  const auto link = [&] { return PciLink{.gtransfers_per_s = 8, .width = 4 << pick(0, 2)}; };
  test::HostBuilder host;
  std::vector<int> bridges;
  for (int socket = 0; socket < 4; ++socket) {
    const int numa = host.numaNode("GenuineIntel", 6, 143);
    for (int i = 0; i < 2; ++i) bridges.push_back(host.bridge(numa, test::kGen4x16));
  }
  std::vector<int> gpus;
  for (int i = 0; i < 8; ++i) {
    gpus.push_back(host.gpu(bridges[static_cast<std::size_t>(pick(0, 7))], link(), 70));
    host.nic(bridges[static_cast<std::size_t>(pick(0, 7))], link(), pick(1, 4) * 100'000);
    for (int other = 0; other < i; ++other) {
      if (pick(0, 2) == 0)
        host.nvlinks(gpus[static_cast<std::size_t>(other)], gpus[static_cast<std::size_t>(i)], pick(1, 3));
    }
  }
  return std::move(host.topology);
}

/// The same host, its nodes in another order, each after its parent; NVLinks, too.
Topology listedAnew(const Topology& topology, std::mt19937& random) {
  std::vector<int> place(topology.nodes.size(), kNoNode);  // by old index
  std::vector<int> waiting(topology.nodes.size());
  std::iota(waiting.begin(), waiting.end(), 0);
  const auto isNext = [&](int node) {
    const int parent = topology.nodes[static_cast<std::size_t>(node)].parent;
    return parent == kNoNode || place[static_cast<std::size_t>(parent)] != kNoNode;
  };
  Topology listed;
  while (!waiting.empty()) {
    std::ranges::shuffle(waiting, random);
    const auto next = std::ranges::find_if(waiting, isNext);
    TopologyNode node = topology.nodes[static_cast<std::size_t>(*next)];
    if (node.parent != kNoNode) node.parent = place[static_cast<std::size_t>(node.parent)];
    place[static_cast<std::size_t>(*next)] = static_cast<int>(listed.nodes.size());
    listed.nodes.push_back(std::move(node));
    waiting.erase(next);
  }
  for (NvLinks links : topology.nvlinks) {
    links.from = place[static_cast<std::size_t>(links.from)];
    links.to = place[static_cast<std::size_t>(links.to)];
    listed.nvlinks.push_back(links);
  }
  std::ranges::shuffle(listed.nvlinks, random);
  validate(listed);
  return listed;
}

TEST(SearchOrder, OfNodesChangesNoTotalAlsoWhereTheSearchIsCutShort) {
  int cut_short = 0;
  for (const unsigned seed : {4U, 5U}) {  // one with ways that are equally good, one too large for the search
    std::mt19937 random(seed);
    const Topology topology = unevenHost(random);
    const ChannelGraph found = search(topology, topology.all(TopologyKind::gpu));
    cut_short += found.was_cut_short ? 1 : 0;
    for (int i = 0; i < 2; ++i) {
      const Topology listed = listedAnew(topology, random);
      const ChannelGraph again = search(listed, listed.all(TopologyKind::gpu));
      EXPECT_NEAR(totalOf(again), totalOf(found), 1e-6) << "seed " << seed;
      EXPECT_EQ(again.channels.size(), found.channels.size()) << "seed " << seed;
    }
  }
  EXPECT_GT(cut_short, 0) << "these hosts are too simple";
}

TEST(SearchOrder, AllRanksFindTheSame) {
  const Topology topology = test::cubeMesh8();
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  const ChannelGraph here = search(topology, gpus);
  std::vector<std::future<ChannelGraph>> there;
  there.reserve(4);
  for (int i = 0; i < 4; ++i)
    there.push_back(std::async(std::launch::async, [&] { return search(topology, gpus); }));
  for (std::future<ChannelGraph>& graph : there) EXPECT_EQ(graph.get(), here);
}

}  // namespace
}  // namespace tutti
