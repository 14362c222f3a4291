// From channels to rings and lanes: what ranks make of a search, or of a graph file.
#include "runtime/rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/host_topology.h"
#include "runtime/ring_ports.h"
#include "runtime/ring_searches.h"
#include "runtime/topology/nccl_xml.h"
#include "runtime/topology/paths.h"
#include "tests/harness/scratch_directory.h"
#include "tests/topology/builders.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Two sockets with a switch each, two GPUs and a NIC below each.
Topology pcieHost() {
  test::HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    const int numa = host.numaNode("AuthenticAMD", 175, 1);
    const int bridge = host.bridge(numa, test::kGen4x16);
    host.gpu(bridge, test::kGen4x16, 80);
    host.gpu(bridge, test::kGen4x16, 80);
    host.nic(bridge, test::kGen4x16, 100000);
  }
  return host.topology;
}

/// `hosts` hosts whose ranks are dealt out in turn: rank r is on host r mod hosts.
Cluster dealt(int hosts) {
  Cluster cluster;
  const auto topology = std::make_shared<const Topology>(pcieHost());
  cluster.shapes.push_back({.topology = topology, .seats = topology->all(TopologyKind::gpu), .caches = {}});
  for (int h = 0; h < hosts; ++h) {
    Cluster::Host host{.name = "node" + std::to_string(h), .shape = 0, .ranks = {}};
    for (int seat = 0; seat < 4; ++seat) host.ranks.push_back(seat * hosts + h);
    cluster.hosts.push_back(host);
  }
  return cluster;
}

TEST(Rings, PassEachHostOnceWhateverTheNumbers) {
  const Cluster cluster = dealt(3);
  const SearchResult found = findRings(cluster, {}, {}, TreeUse::dumped);
  const RingTables tables = ringTables(found);
  ASSERT_NE(tables.view().tables, nullptr);
  for (std::uint32_t lane = 0; lane < 8; ++lane) {
    const std::uint16_t* order = tables.view().of(lane, 12);
    int crossings = 0;
    for (int place = 0; place < 12; ++place) crossings += order[place] % 3 != order[(place + 1) % 12] % 3;
    EXPECT_EQ(crossings, 3) << "lane " << lane;
  }
}

/// What transports/verbs/port_order.h begins with are the nearest cards of a rank: the search wants no
/// others.
TEST(Rings, EnterAndLeaveByTheNearestCards) {
  const Cluster cluster = dealt(2);
  const Cluster::HostShape& shape = cluster.shapes[0];
  const TopologyPaths paths(*shape.topology);
  const auto expectNearest = [&](int seat, int card) {
    const int gpu = shape.seats[static_cast<std::size_t>(seat)];
    for (const int other : shape.topology->all(TopologyKind::net)) {
      EXPECT_LE(paths.between(gpu, card).path_class, paths.between(gpu, other).path_class)
          << shape.topology->label(gpu) << " by " << shape.topology->label(card);
    }
  };
  const SearchResult found = findRings(cluster, {}, {}, TreeUse::dumped);
  for (const HostChannel& channel : found.rings[0].channels) {
    expectNearest(channel.order.front(), channel.net_in);
    expectNearest(channel.order.back(), channel.net_out);
  }
}

/// NICs are not crossed: who sends and who receives between two hosts do so by ports of one name, those of
/// the ring.
TEST(Rings, PortsOfARingAreThoseThatWereFound) {
  Cluster cluster;
  const auto topology = std::make_shared<const Topology>(test::dgxLike());
  cluster.shapes.push_back({.topology = topology, .seats = topology->all(TopologyKind::gpu), .caches = {}});
  for (int h = 0; h < 3; ++h) {
    Cluster::Host host{.name = "node" + std::to_string(h), .shape = 0, .ranks = {}};
    for (int seat = 0; seat < 8; ++seat) host.ranks.push_back(8 * h + seat);
    cluster.hosts.push_back(host);
  }
  const SearchResult found = findRings(cluster, {.cross_nic = SearchRules::CrossNic::no}, {}, TreeUse::none);
  std::map<std::pair<int, std::uint32_t>, std::string> sending;
  std::map<std::pair<int, std::uint32_t>, std::string> receiving;
  std::set<std::string> used;
  for (int rank = 0; rank < 24; ++rank) {
    for (const RingPort& port : ringPortsOf(cluster, found, rank)) {
      EXPECT_NE(port.peer / 8, rank / 8);
      const HostChannel& channel = found.rings[0].channels[port.channel];
      const TopologyNode& node = topology->nodes[static_cast<std::size_t>(channel.net_out)];
      EXPECT_EQ(port.place.device, node.net.name);
      EXPECT_EQ(port.place.bus_id, topology->nodes[static_cast<std::size_t>(node.parent)].bus_id);
      const int from = port.sends ? rank : port.peer;
      (port.sends ? sending : receiving)[{from, port.channel}] = port.place.device;
      used.insert(port.place.device);
    }
  }
  EXPECT_EQ(sending.size(), 3 * found.channels.size());
  EXPECT_EQ(sending, receiving);
  EXPECT_EQ(used.size(), 8U) << "each NIC carries something";
}

TEST(HostTopology, PortsThatAreLeftOutGoWithTheirCards) {
  const Topology whole = test::dgxLike();
  const Topology kept = withoutPorts(whole, "^=mlx5_2:1,mlx5_5");
  validate(kept);
  EXPECT_EQ(kept.all(TopologyKind::net).size(), 6U);
  EXPECT_EQ(kept.all(TopologyKind::nic).size(), 6U);
  EXPECT_EQ(kept.all(TopologyKind::gpu).size(), 8U);
  const auto names = [](const Topology& topology) {
    std::string all;
    for (const int port : topology.all(TopologyKind::net))
      all += topology.nodes[static_cast<std::size_t>(port)].net.name + " ";
    return all;
  };
  EXPECT_EQ(names(kept), "mlx5_0 mlx5_1 mlx5_3 mlx5_4 mlx5_6 mlx5_7 ");
  const TopologyPaths paths(kept);
  const std::vector<int> gpus = kept.all(TopologyKind::gpu);
  EXPECT_EQ(paths.between(gpus[0], gpus[7]).path_class, PathClass::nvl);
  EXPECT_EQ(names(readNcclXml(writeNcclXml({kept}), "written").hosts.front()), names(kept))
      << "what other hosts are told";
  EXPECT_EQ(withoutPorts(whole, ""), whole);
}

TEST(Rings, LanesAreTwoForEachChannelWithinTheRules) {
  SearchResult found;
  found.channels.resize(3);
  EXPECT_EQ(lanesFor(found, {}), 6U);
  EXPECT_EQ(lanesFor(found, {.most_channels = 4}), 4U);
  EXPECT_EQ(lanesFor(found, {.least_channels = 10}), 10U);
  EXPECT_EQ(lanesFor(found, {.least_channels = 100}), 16U);
  EXPECT_EQ(lanesFor(found, {.least_channels = 8, .most_channels = 2}), 2U);
  found.channels.resize(20);
  EXPECT_EQ(lanesFor(found, {}), 16U);
}

TEST(Rings, EqualResultsHaveEqualDigests) {
  const Cluster cluster = dealt(2);
  const SearchResult found = findRings(cluster, {}, {}, TreeUse::dumped);
  EXPECT_EQ(digestOf(found), digestOf(findRings(cluster, {}, {}, TreeUse::dumped)));
  SearchResult other = found;
  std::swap(other.channels[0].ring[0], other.channels[0].ring[1]);
  EXPECT_NE(digestOf(found), digestOf(other));
  other = found;
  other.channels.push_back(other.channels[0]);
  EXPECT_NE(digestOf(found), digestOf(other));
}

TEST(Rings, TreesAreLookedForByWhoDumpsThemAndChangeNoRing) {
  const Cluster cluster = dealt(2);
  const SearchResult with = findRings(cluster, {}, {}, TreeUse::dumped);
  const SearchResult without = findRings(cluster, {}, {}, TreeUse::none);
  EXPECT_EQ(with.trees.size(), 1U);
  EXPECT_EQ(with.channels[0].trees[0].size(), 8U);
  EXPECT_TRUE(without.trees.empty());
  EXPECT_TRUE(without.channels[0].trees[0].empty());
  EXPECT_EQ(digestOf(with), digestOf(without));
  EXPECT_EQ(with.reasons, without.reasons);
}

// What is remembered is told from what is like it by every part that a search depends on.
TEST(Rings, WhatWasFoundIsRememberedByAllThatItDependsOn) {
  RingSearches searches;
  const auto expectAsFound = [&searches](const Cluster& cluster, const TopologyRules& rules, TreeUse trees) {
    const SearchResult expected = findRings(cluster, rules, {}, trees);
    for (int time = 0; time < 2; ++time) {
      const auto copy = std::make_shared<const Cluster>(cluster);
      const SearchResult found = searches.find(copy, rules, {}, trees);
      EXPECT_EQ(found.rings, expected.rings);
      EXPECT_EQ(found.trees, expected.trees);
      EXPECT_EQ(found.reasons, expected.reasons);
      EXPECT_EQ(digestOf(found), digestOf(expected));
    }
  };
  TopologyRules one_channel;
  one_channel.most_channels = 1;
  for (int round = 0; round < 2; ++round) {
    Cluster cluster = dealt(2);
    expectAsFound(cluster, {}, TreeUse::none);
    expectAsFound(cluster, {}, TreeUse::dumped);
    expectAsFound(cluster, one_channel, TreeUse::none);
    std::ranges::reverse(cluster.shapes[0].seats);
    expectAsFound(cluster, {}, TreeUse::none);
    std::swap(cluster.hosts[0].ranks, cluster.hosts[1].ranks);
    expectAsFound(cluster, {}, TreeUse::none);
    cluster.hosts[0].name = "other";
    expectAsFound(cluster, {}, TreeUse::none);
    Topology slower = *cluster.shapes[0].topology;
    for (TopologyNode& node : slower.nodes) node.link.width /= 2;
    cluster.shapes[0].topology = std::make_shared<const Topology>(slower);
    expectAsFound(cluster, {}, TreeUse::none);
    for (int hosts = 3; hosts < 6; ++hosts) expectAsFound(dealt(hosts), {}, TreeUse::none);
  }
}

TEST(Rings, TheyAreToldAsNcclTellsThem) {
  const Cluster cluster = dealt(1);
  const SearchResult found = findRings(cluster, {}, {}, TreeUse::dumped);
  const auto lines = describeRings(cluster, found);
  ASSERT_EQ(lines.size(), found.channels.size() + 2);
  EXPECT_EQ(lines[0].rfind("Channel 00/0" + std::to_string(found.channels.size()) + " : ", 0), 0U)
      << lines[0];
  EXPECT_EQ(lines[lines.size() - 2],
            "Pattern 4, crossNic 0, nChannels 1, bw 16.000000/16.000000, type SYS/PIX, sameChannels 1");
  EXPECT_NE(lines.back().find(" channel(s), "), std::string::npos) << lines.back();
  EXPECT_NE(lines.back().find("GB/s each inside hosts"), std::string::npos) << lines.back();
}

TEST(Rings, RanksOfOnePlaceHaveNoSpeedOfLinks) {
  const Cluster cluster = dealt(1);
  SearchResult found = searchCluster(cluster, {});
  found.intra_gbytes_per_s = 5000;  // NCCL's number for it
  const std::string line = describeRings(cluster, found).back();
  EXPECT_NE(line.find("no link inside hosts limits them"), std::string::npos) << line;
  EXPECT_EQ(line.find("5000"), std::string::npos) << line;
}

class RingFiles : public testing::Test {
 protected:
  GraphFile dumped(const Cluster& cluster, const SearchResult& found) const {
    const std::string path = directory_.path() + "/graph.xml";
    EXPECT_EQ(dumpRings(cluster, found, 0, path), "");
    return readGraphFile(path);
  }
  const test::ScratchDirectory directory_;
};

TEST_F(RingFiles, WhatIsDumpedIsUsedInsteadOfASearch) {
  const Cluster cluster = dealt(2);
  SearchResult found = findRings(cluster, {}, {}, TreeUse::dumped);
  // An order that no search would pick: from socket to socket and back.
  for (HostChannel& channel : found.rings[0].channels) channel.order = {0, 2, 1, 3};
  const GraphFile file = dumped(cluster, found);
  EXPECT_NE(file.hash(), 0U);
  const SearchResult given = findRings(cluster, {}, file, TreeUse::none);
  ASSERT_EQ(given.channels.size(), found.channels.size());
  for (const ClusterChannel& channel : given.channels) {
    EXPECT_EQ(channel.ring, (std::vector{0, 4, 2, 6, 1, 5, 3, 7}));
  }
}

TEST_F(RingFiles, WhatDoesNotFitIsRefusedByName) {
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ncclInvalidUsage);
      return error.what();
    }
    return "accepted";
  };
  const std::string missing = refusal([&] { readGraphFile(directory_.path() + "/none.xml"); });
  EXPECT_NE(
      missing.find("NCCL_GRAPH_FILE: " + directory_.path() + "/none.xml: cannot be opened: No such file"),
      std::string::npos)
      << missing;
  const Cluster cluster = dealt(1);
  const auto use = [&](const std::string& text) {
    return refusal(
        [&] { findRings(cluster, {}, readGraphFile(directory_.write("graph.xml", text)), TreeUse::none); });
  };
  EXPECT_NE(use("<graphs version=\"1\">\n<graph").find("graph.xml:2: "), std::string::npos) << use("<graphs");
  EXPECT_NE(use("<graphs version=\"1\"></graphs>").find("has no rings"), std::string::npos)
      << use("<graphs version=\"1\"></graphs>");
  const std::string twice =
      R"(<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="20"
 latencyinter="0" typeintra="PIX" typeinter="PIX" samechannels="1">
 <channel><gpu dev="0" rank="0"/><gpu dev="0" rank="1"/><gpu dev="2" rank="2"/><gpu dev="3" rank="3"/></channel>
</graph></graphs>)";
  EXPECT_NE(use(twice).find("NCCL_GRAPH_FILE: "), std::string::npos) << use(twice);
}

TEST_F(RingFiles, WhatCannotBeWrittenIsSaid) {
  const Cluster cluster = dealt(1);
  EXPECT_NE(
      dumpRings(cluster, findRings(cluster, {}, {}, TreeUse::dumped), 0, directory_.path() + "/no/graph.xml"),
      "");
}

}  // namespace
}  // namespace tutti
