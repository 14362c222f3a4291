// The search inside one host: the hosts that people have, worked out by hand, and random ones against
// exhaustive search.
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>
#include <random>

#include "runtime/topology/host_problem.h"
#include "runtime/topology/legs.h"
#include "tests/topology/builders.h"
#include "tests/topology/search_oracle.h"

namespace tutti {
namespace {

using test::exhaustiveTotal;
using test::totalOf;

constexpr double kRounding = 1e-6;

/// Of this process; others may be busy.
class CpuTime {
 public:
  double milliseconds() const { return 1e3 * static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_ = std::clock();
};

struct Expected {
  std::size_t channels;
  double speed;
  PathClass intra;
  PathClass inter;
};

void expectValid(const Topology& topology, const std::vector<int>& seats, const ChannelGraph& graph,
                 const SearchRules& rules = {}) {
  for (const HostChannel& channel : graph.channels) {
    EXPECT_TRUE(test::holdsEachOnce(channel.order, seats.size()));
  }
  const TopologyPaths paths(topology);
  EXPECT_LE(test::loadsOf(paths, seats, graph, rules).seconds(), 1 + kRounding);
}

ChannelGraph search(const Topology& topology, const std::vector<int>& seats, int hosts,
                    ChannelPattern pattern = ChannelPattern::ring, const SearchRules& rules = {}) {
  return searchHost(TopologyPaths(topology), seats, pattern, rules, hosts);
}

void expectRings(const Topology& topology, int hosts, const Expected& expected,
                 TopologyKind kind = TopologyKind::gpu) {
  const std::vector<int> seats = topology.all(kind);
  const CpuTime time;
  const ChannelGraph rings = search(topology, seats, hosts);
  std::cout << seats.size() << " seats, " << hosts << " hosts: rings in " << time.milliseconds() << " ms\n";
  expectValid(topology, seats, rings);
  EXPECT_EQ(rings.channels.size(), expected.channels);
  EXPECT_NEAR(std::min(rings.intra_gbytes_per_s, rings.inter_gbytes_per_s), expected.speed, kRounding);
  EXPECT_EQ(name(rings.intra_class), name(expected.intra));
  EXPECT_EQ(name(rings.inter_class), name(expected.inter));
  EXPECT_FALSE(rings.was_cut_short);
  expectValid(topology, seats, search(topology, seats, hosts, ChannelPattern::tree));
}

// Every ring leaves every GPU once, and 12 NVLinks of 20 GB/s leave each: 240 GB/s in all, and any order has
// it. One channel per NVLink: 12 of 20.
TEST(HostSearch, DgxAlone) { expectRings(test::dgxLike(), 1, {12, 20, PathClass::nvl, PathClass::pix}); }

// Eight ports of 25 GB/s, each behind 16 GT/s x16 = 24: 192 in all. A ring comes in by a port to a GPU at the
// same switch (24 each way, so once) and leaves from the other one: eight of 24. More than an NVLink, so two
// of 12 for each.
TEST(HostSearch, DgxAmongOthers) {
  expectRings(test::dgxLike(), 2, {16, 12, PathClass::nvl, PathClass::pix});
}

// 4 NVLinks of 20 GB/s to each of 3 others: 240 out of every GPU. Each of the six orders of four, with 40:
// every ordered pair follows another in two of them, which is its 80.
TEST(HostSearch, MeshAlone) { expectRings(test::nvlinkMesh4(), 1, {12, 20, PathClass::nvl, PathClass::pix}); }

// One port: 25 GB/s behind 24; through the CPU, into whose memory it goes. Two channels of 12, because one
// NVLink has 20.
TEST(HostSearch, MeshAmongOthers) {
  expectRings(test::nvlinkMesh4(), 2, {2, 12, PathClass::nvl, PathClass::phb});
}

// Six NVLinks of 20 GB/s out of each GPU: 120. The known decomposition: the double links are a ring (0 3 2 1
// 5 6 7 4), which runs twice in each direction, and the single links another (0 1 3 7 5 4 6 2), once in each:
// six rings of 20. The search may find another such.
TEST(HostSearch, CubeMeshAlone) {
  expectRings(test::cubeMesh8(), 1, {6, 20, PathClass::nvl, PathClass::pix});
}

// Four ports of 12.5 GB/s behind 8 GT/s x16 = 12: 48.
TEST(HostSearch, CubeMeshAmongOthers) {
  expectRings(test::cubeMesh8(), 2, {4, 12, PathClass::nvl, PathClass::pix});
}

// A ring passes from socket to socket and back. Skylake's link has 10 GB/s; through an Intel CPU a byte takes
// 1.2 of each PCI link, of which 12 / 1.2 = 10 remain. One ring uses up both.
TEST(HostSearch, PcieAlone) { expectRings(test::pcieOnly4(), 1, {1, 10, PathClass::sys, PathClass::pix}); }

// The same ring, in and out by the port at GPUs 0 and 1: its 12 GB/s are no limit.
TEST(HostSearch, PcieAmongOthers) {
  expectRings(test::pcieOnly4(), 2, {1, 10, PathClass::sys, PathClass::pix});
}

// One NUMA node: nothing is passed, one channel at the pace of memory. 1 Gbit/s to others.
TEST(HostSearch, Laptop) {
  expectRings(test::laptop(), 1, {1, 5000, PathClass::loc, PathClass::pix}, TopologyKind::numa_node);
  expectRings(test::laptop(), 2, {1, 0.125, PathClass::loc, PathClass::phb}, TopologyKind::numa_node);
}

TEST(HostSearch, RanksOfOneNumaNodeAreNeighbours) {
  const Topology topology = test::pcieOnly4();
  const std::vector<int> numa = topology.all(TopologyKind::numa_node);
  const std::vector<int> seats{numa[1], numa[0], numa[1], numa[0], numa[1]};
  const ChannelGraph rings = search(topology, seats, 1);
  EXPECT_EQ(rings.channels, std::vector<HostChannel>({{kNoNode, kNoNode, {0, 2, 4, 1, 3}}}));
  EXPECT_NEAR(rings.intra_gbytes_per_s, 10, kRounding);
}

TEST(HostSearch, MostChannels) {
  const Topology topology = test::cubeMesh8();
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  // One of the double links: 40 GB/s, which is two of 20; but only one is allowed.
  const ChannelGraph one = search(topology, gpus, 1, ChannelPattern::ring, {.most_channels = 1});
  EXPECT_EQ(one.channels.size(), 1u);
  EXPECT_NEAR(one.intra_gbytes_per_s, 40, kRounding);
}

// Without P2P everything between GPUs goes through memory: into a GPU of the mesh by its 24 GB/s of PCI.
TEST(HostSearch, P2pLevelKeepsGpusApart) {
  const Topology topology = test::nvlinkMesh4();
  const SearchRules rules{.p2p_level = PathClass::loc};
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  const ChannelGraph rings = search(topology, gpus, 1, ChannelPattern::ring, rules);
  EXPECT_EQ(rings.intra_class, PathClass::phb);
  EXPECT_NEAR(totalOf(rings), 24, kRounding);
  expectValid(topology, gpus, rings, rules);
}

// At PIX, port to GPU takes 24 GB/s of the GPU's link alone; through memory also of the switch's, which four
// GPUs and ports share both ways.
TEST(HostSearch, RdmaLevelKeepsPortsAndGpusApart) {
  const Topology topology = test::dgxLike();
  const SearchRules rules{.rdma_level = PathClass::loc};
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  const ChannelGraph rings = search(topology, gpus, 2, ChannelPattern::ring, rules);
  EXPECT_EQ(rings.inter_class, PathClass::phb);
  // Four switches of 24 upwards, where two bytes pass for each that goes through the host.
  EXPECT_NEAR(totalOf(rings), 48, kRounding);
  expectValid(topology, gpus, rings, rules);
}

/// Two Broadwell sockets, each with a switch of a GPU and a port of 100 Gbit/s.
Topology twoSockets() {
  test::HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    const int bridge = host.bridge(host.numaNode("GenuineIntel", 6, 79), test::kGen3x16);
    host.gpu(bridge, test::kGen3x16, 70);
    host.nic(bridge, test::kGen3x16, 100000);
  }
  return std::move(host.topology);
}

// By one port, a ring passes between the sockets (6 GB/s) once in each direction: 6. By two, it passes once,
// and another one the other way: into a GPU come 1 from its port and 1.2 from the other socket, of 12: two of
// 12 / 2.2.
TEST(HostSearch, NicsAreCrossedWhereThatCarriesMore) {
  const Topology topology = twoSockets();
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  const ChannelGraph crossing = search(topology, gpus, 2);
  EXPECT_TRUE(crossing.crosses_nics);
  EXPECT_EQ(crossing.channels.size(), 2u);
  EXPECT_NEAR(totalOf(crossing), 2 * 12 / 2.2, kRounding);
  expectValid(topology, gpus, crossing);
  const ChannelGraph straight =
      search(topology, gpus, 2, ChannelPattern::ring, {.cross_nic = SearchRules::CrossNic::no});
  EXPECT_FALSE(straight.crosses_nics);
  EXPECT_NEAR(totalOf(straight), 6, kRounding);
  expectValid(topology, gpus, straight);
}

/// As HGX H100: two Intel sockets, each with four switches (Gen 5) of a GPU and a port of 400 Gbit/s; an
/// NVSwitch.
Topology hgxLike() {
  constexpr PciLink kGen5x16{.gtransfers_per_s = 32, .width = 16};
  test::HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    const int numa = host.numaNode("GenuineIntel", 6, 143);
    for (int i = 0; i < 4; ++i) {
      const int bridge = host.bridge(numa, kGen5x16);
      host.gpu(bridge, kGen5x16, 90);
      host.nic(bridge, kGen5x16, 400000);
    }
  }
  const int nvswitch = host.nvSwitch();
  for (const int gpu : host.topology.all(TopologyKind::gpu)) host.nvlinks(gpu, nvswitch, 18);
  return std::move(host.topology);
}

// Eight ports, each next to one GPU by 48 GB/s: in by one and out by another makes 384. In and out by the
// same one, every channel would pass through a CPU, at 1.2 times the load: 320.
TEST(HostSearch, NicsAreCrossedBeforeAWorseClassIsTaken) {
  const Topology topology = hgxLike();
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  for (const PathClass level : {PathClass::pix, PathClass::pxb, PathClass::sys}) {
    for (const auto cross : {SearchRules::CrossNic::yes, SearchRules::CrossNic::automatic}) {
      const SearchRules rules{.rdma_level = level, .cross_nic = cross};
      const ChannelGraph rings = search(topology, gpus, 16, ChannelPattern::ring, rules);
      EXPECT_TRUE(rings.crosses_nics) << name(level);
      EXPECT_EQ(rings.inter_class, PathClass::pix) << name(level);
      EXPECT_NEAR(totalOf(rings), 384, kRounding) << name(level);
      expectValid(topology, gpus, rings, rules);
    }
  }
}

/// Up to two sockets and four switches, NVLinks here and there.
Topology randomHost(std::mt19937& random, int gpus) {
  const auto pick = [&random](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  test::HostBuilder host;
  const PciLink links[] = {test::kGen3x16, test::kGen4x16, {.gtransfers_per_s = 8, .width = 8}};
  const auto link = [&] { return links[pick(0, 2)]; };
  std::vector<int> seats;
  seats.reserve(static_cast<std::size_t>(gpus));
  std::vector<int> bridges;
  const bool is_intel = pick(0, 1) == 1;
  for (int socket = 0; socket < 2; ++socket) {
    const int numa = is_intel ? host.numaNode("GenuineIntel", 6, 85) : host.numaNode("AuthenticAMD", 25, 1);
    for (int i = 0; i < 2; ++i) bridges.push_back(host.bridge(numa, link()));
  }
  for (int g = 0; g < gpus; ++g) {
    seats.push_back(host.gpu(bridges[static_cast<std::size_t>(pick(0, 3))], link(), 80));
  }
  for (int n = pick(1, 2); n > 0; --n) {
    host.nic(bridges[static_cast<std::size_t>(pick(0, 3))], link(), pick(1, 4) * 50000);
  }
  if (pick(0, 2) > 0) {
    for (std::size_t a = 0; a < seats.size(); ++a) {
      for (std::size_t b = a + 1; b < seats.size(); ++b) {
        if (pick(0, 3) > 0) host.nvlinks(seats[a], seats[b], pick(1, 4));
      }
    }
  }
  return std::move(host.topology);
}

// A worse class must carry a quarter more, twice the channels a tenth: no more than that is lost.
TEST(HostSearch, RandomHostsAgainstExhaustiveSearch) {
  constexpr double kGivenUp = 1.25 * 1.1;
  constexpr int kChannels = 2;
  const SearchRules rules{.cross_nic = SearchRules::CrossNic::no, .most_channels = kChannels};
  int at_best = 0;
  int searches = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const Topology topology = randomHost(random, 2 + static_cast<int>(seed % 4));
    const TopologyPaths paths(topology);
    const std::vector<int> gpus = topology.all(TopologyKind::gpu);
    for (const ChannelPattern pattern : {ChannelPattern::ring, ChannelPattern::tree}) {
      for (const int hosts : {1, 2}) {
        const ChannelGraph graph = search(topology, gpus, hosts, pattern, rules);
        const std::vector<int> ports = hosts == 1 ? std::vector<int>{} : topology.all(TopologyKind::net);
        const double most = exhaustiveTotal(paths, gpus, pattern, ports, kChannels);
        expectValid(topology, gpus, graph, rules);
        EXPECT_FALSE(graph.was_cut_short);
        EXPECT_LE(totalOf(graph), most * (1 + kRounding)) << "seed " << seed;
        EXPECT_GE(totalOf(graph) * kGivenUp, most * (1 - kRounding)) << "seed " << seed;
        at_best += totalOf(graph) >= most * (1 - kRounding) ? 1 : 0;
        ++searches;
      }
    }
  }
  std::cout << at_best << " of " << searches << " searches found the very best\n";
}

TEST(HostSearch, TheOrderOfSeatsAndLinksChangesNoTotal) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Topology topology = randomHost(random, 5);
    std::vector<int> gpus = topology.all(TopologyKind::gpu);
    for (const int hosts : {1, 2}) {
      const double total = totalOf(search(topology, gpus, hosts));
      std::ranges::shuffle(gpus, random);
      std::ranges::shuffle(topology.nvlinks, random);
      const ChannelGraph shuffled = search(topology, gpus, hosts);
      EXPECT_NEAR(totalOf(shuffled), total, kRounding) << "seed " << seed;
      expectValid(topology, gpus, shuffled);
    }
  }
}

// 65 GPUs at one AMD CPU are too many to search: they keep their order, at what their links of 24 GB/s carry.
TEST(HostSearch, TooManyGpusKeepTheirOrder) {
  test::HostBuilder host;
  const int numa = host.numaNode("AuthenticAMD", 25, 1);
  for (int i = 0; i < 65; ++i) host.gpu(numa, test::kGen4x16, 80);
  const std::vector<int> gpus = host.topology.all(TopologyKind::gpu);
  const ChannelGraph rings = search(host.topology, gpus, 1);
  ASSERT_EQ(rings.channels.size(), 1u);
  EXPECT_TRUE(test::holdsEachOnce(rings.channels[0].order, 65));
  EXPECT_NEAR(rings.intra_gbytes_per_s, 24, kRounding);
  EXPECT_EQ(rings.intra_class, PathClass::phb);
  expectValid(host.topology, gpus, rings);
  const auto reasons = searchCluster(test::clusterOf(host.topology, TopologyKind::gpu, 1), {}).reasons;
  EXPECT_NE(reasons.at(1).find("not searched: ranks are in 65 places, more than 64"), std::string::npos);
}

TEST(HostSearch, TooManyPortsAreNotSearched) {
  test::HostBuilder host;
  const int numa = host.numaNode("AuthenticAMD", 25, 1);
  for (int i = 0; i < 2; ++i) host.gpu(numa, test::kGen4x16, 80);
  for (int i = 0; i < 65; ++i) host.nic(numa, test::kGen4x16, 100000);
  const std::vector<int> gpus = host.topology.all(TopologyKind::gpu);
  const ChannelGraph rings = search(host.topology, gpus, 2);
  ASSERT_EQ(rings.channels.size(), 1u);
  EXPECT_EQ(rings.channels[0].net_in, host.topology.all(TopologyKind::net).front());
  EXPECT_NEAR(std::min(rings.intra_gbytes_per_s, rings.inter_gbytes_per_s), 12.5, kRounding);
  expectValid(host.topology, gpus, rings);
  const Cluster cluster = test::clusterOf(host.topology, TopologyKind::gpu, 2);
  const auto reasons = searchCluster(cluster, {}).reasons;
  EXPECT_TRUE(std::ranges::any_of(reasons, [](const std::string& reason) {
    return reason.find("not searched: it has 65 ports, more than 64") != std::string::npos;
  }));
  EXPECT_EQ(search(host.topology, gpus, 1).was_cut_short, false);  // no port is used
}

// No NVLink, and places that nobody knows how to pass between.
TEST(HostSearch, GpusWithoutAWayGetTheLastResort) {
  Topology topology;
  topology.nodes = {{.kind = TopologyKind::gpu, .bus_id = "0000:01:00.0"},
                    {.kind = TopologyKind::gpu, .bus_id = "0000:02:00.0"}};
  const ChannelGraph rings = search(topology, {0, 1}, 1);
  ASSERT_EQ(rings.channels.size(), 1u);
  EXPECT_NEAR(rings.intra_gbytes_per_s, 0.1, kRounding);
}

// What is not known to be best costs as much as is allowed, and no more. Sixteen GPUs on two sockets without
// NVLink, each with a port, have far more routes than can be listed.
TEST(HostSearch, LargeHostsStayInBounds) {
  test::HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    const int numa = host.numaNode("AuthenticAMD", 25, 1);
    for (int i = 0; i < 4; ++i) {
      const int bridge = host.bridge(numa, test::kGen4x16);
      for (int j = 0; j < 2; ++j) host.gpu(bridge, test::kGen4x16, 80);
      for (int j = 0; j < 2; ++j) host.nic(bridge, test::kGen4x16, 200000);
    }
  }
  const std::vector<int> gpus = host.topology.all(TopologyKind::gpu);
  const CpuTime time;
  const ChannelGraph rings = search(host.topology, gpus, 2);
  std::cout << "16 GPUs, 16 ports: rings in " << time.milliseconds() << " ms, " << totalOf(rings)
            << " GB/s\n";
  expectValid(host.topology, gpus, rings);
}

// 64 NUMA nodes, each with a way to every other: 4,032 links. Ranks in host memory have one channel.
TEST(HostSearch, ManyNumaNodes) {
  test::HostBuilder host;
  for (int i = 0; i < 64; ++i) host.numaNode("AuthenticAMD", 25, 1, 1);
  const std::vector<int> seats = host.topology.all(TopologyKind::numa_node);
  const CpuTime time;
  const ChannelGraph rings = search(host.topology, seats, 1);
  std::cout << "64 NUMA nodes: rings in " << time.milliseconds() << " ms\n";
  ASSERT_EQ(rings.channels.size(), 1u);
  EXPECT_NEAR(rings.intra_gbytes_per_s, 16, kRounding);
  expectValid(host.topology, seats, rings);
}

// 64 GPUs at one NVSwitch, and the same many without: one ring is all that is looked for in any case.
TEST(HostSearch, ManyGpus) {
  for (const bool has_nvlinks : {true, false}) {
    test::HostBuilder host;
    const int numa = host.numaNode("AuthenticAMD", 25, 1);
    for (int i = 0; i < 64; ++i) host.gpu(numa, test::kGen4x16, 90);
    const std::vector<int> gpus = host.topology.all(TopologyKind::gpu);
    const int nvswitch = has_nvlinks ? host.nvSwitch() : 0;
    for (const int gpu : has_nvlinks ? gpus : std::vector<int>{}) host.nvlinks(gpu, nvswitch, 18);
    const CpuTime time;
    const ChannelGraph rings = search(host.topology, gpus, 1);
    std::cout << "64 GPUs: rings in " << time.milliseconds() << " ms\n";
    EXPECT_NEAR(totalOf(rings), has_nvlinks ? 18 * 20.6 : 24, kRounding);
    expectValid(host.topology, gpus, rings);
  }
}

}  // namespace
}  // namespace tutti
