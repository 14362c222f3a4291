#include "runtime/topology/paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/topology/bandwidths.h"
#include "tests/topology/builders.h"

namespace tutti {
namespace {

using Nodes = std::vector<int>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Of a path, the nodes after the first.
Nodes nodesOf(const TopologyPaths& paths, const Path& path) {
  Nodes nodes;
  for (const int edge : path.edges) nodes.push_back(paths.edges()[at(edge)].to);
  return nodes;
}

/// A host with the names people give its parts: "gpu3", "port0", "numa1", "bridge0", in the order of nodes.
class Paths {
 public:
  explicit Paths(Topology topology) : topology_(std::move(topology)), paths_(topology_) {
    validate(topology_);
  }

  int node(const std::string& name) const {
    const std::size_t digits = name.find_first_of("0123456789");
    const std::string kind = name.substr(0, digits);
    const TopologyKind kinds[] = {TopologyKind::gpu, TopologyKind::net, TopologyKind::numa_node,
                                  TopologyKind::pci_bridge, TopologyKind::nvswitch};
    const std::string names[] = {"gpu", "port", "numa", "bridge", "nvswitch"};
    const auto place = std::ranges::find(names, kind) - std::begin(names);
    return topology_.all(kinds[place]).at(std::stoul(name.substr(digits)));
  }

  /// "NVL 240 2": class, GB/s and the number of edges.
  std::string between(const std::string& from, const std::string& to) const {
    const Path& path = paths_.between(node(from), node(to));
    return fmt::format("{} {:.6g} {}", name(path.path_class), path.gbytes_per_s, path.edges.size());
  }
  const TopologyPaths& paths() const { return paths_; }
  const Path& path(const std::string& from, const std::string& to) const {
    return paths_.between(node(from), node(to));
  }

 private:
  Topology topology_;
  TopologyPaths paths_;
};

// Gen 4 x16: 16 GT/s x 16 lanes / 8 x 3/4 = 24 GB/s. An NVLink of the A100: 20, so 12 of them 240. AMD's
// sockets: 16. A port of 200 Gbit/s: 25.
TEST(TopologyPaths, DgxLike) {
  const Paths host(test::dgxLike());
  EXPECT_EQ(host.between("gpu0", "gpu0"), "LOC 5000 0");
  EXPECT_EQ(host.between("gpu0", "gpu1"), "NVL 240 2");  // by the NVSwitch, though they share a PCI switch
  EXPECT_EQ(host.between("gpu0", "gpu7"), "NVL 240 2");
  EXPECT_EQ(host.between("gpu0", "port0"), "PIX 24 3");  // PCI switch, card, port
  EXPECT_EQ(host.between("gpu0", "port1"), "PIX 24 3");
  EXPECT_EQ(host.between("gpu0", "port2"), "PHB 24 5");  // switch, CPU, switch, card, port
  EXPECT_EQ(host.between("gpu0", "port4"), "SYS 16 6");
  EXPECT_EQ(host.between("port4", "gpu0"), "SYS 16 6");
  EXPECT_EQ(host.between("gpu0", "numa0"), "PHB 24 2");
  EXPECT_EQ(host.between("gpu0", "numa1"), "SYS 16 3");
  EXPECT_EQ(host.between("numa0", "numa1"), "SYS 16 1");
  EXPECT_EQ(host.between("port0", "port1"), "PIX 24 4");
  EXPECT_EQ(host.between("gpu0", "bridge0"), "PIX 24 1");
  EXPECT_EQ(host.between("bridge0", "bridge1"), "PHB 24 2");
  // NVSwitches pass on to GPUs, and GPUs nothing to NICs: from the switch there is no way to a port.
  EXPECT_EQ(host.between("nvswitch0", "gpu3"), "NVL 240 1");
  EXPECT_EQ(host.between("nvswitch0", "port0"), "DIS 0 0");
}

// Four NVLinks of 20 between every two. A port of 25 behind PCI of 24, by the CPU.
TEST(TopologyPaths, NvlinkMesh) {
  const Paths host(test::nvlinkMesh4());
  for (const char* other : {"gpu1", "gpu2", "gpu3"})
    EXPECT_EQ(host.between("gpu0", other), "NVL 80 1") << other;
  EXPECT_EQ(host.between("gpu3", "port0"), "PHB 24 3");
}

// NVLinks of the V100: 20 each. Gen 3 x16: 12. Sockets of a Broadwell: 6. A port of 100 Gbit/s: 12.5.
TEST(TopologyPaths, HybridCubeMesh) {
  const Paths host(test::cubeMesh8());
  EXPECT_EQ(host.between("gpu0", "gpu1"), "NVL 20 1");
  EXPECT_EQ(host.between("gpu0", "gpu3"), "NVL 40 1");
  EXPECT_EQ(host.between("gpu0", "gpu4"), "NVL 40 1");
  // 0 to 5 by GPU 1 (one link, then two) or 4 (two, then one): both 20, so by the first.
  EXPECT_EQ(host.between("gpu0", "gpu5"), "NVB 20 2");
  EXPECT_EQ(nodesOf(host.paths(), host.path("gpu0", "gpu5")).front(), host.node("gpu1"));
  // 0 to 7 by GPU 3 (two, then one: 20) or 4 (two, then two: 40).
  EXPECT_EQ(host.between("gpu0", "gpu7"), "NVB 40 2");
  EXPECT_EQ(nodesOf(host.paths(), host.path("gpu0", "gpu7")).front(), host.node("gpu4"));
  EXPECT_EQ(host.between("gpu0", "port0"), "PIX 12 3");
  // By Intel's CPU data takes 1.2 times the bytes on PCI: 12 / 1.2.
  EXPECT_EQ(host.between("gpu0", "port1"), "PHB 10 5");
  EXPECT_EQ(host.path("gpu0", "port1").pci_load, 1.2);
  EXPECT_EQ(host.path("gpu0", "port0").pci_load, 1);
  EXPECT_EQ(host.between("gpu0", "port2"), "SYS 6 6");
}

// Gen 3 x16: 12, by the CPU 12 / 1.2. Sockets of a Skylake: 10.
TEST(TopologyPaths, PcieOnly) {
  const Paths host(test::pcieOnly4());
  EXPECT_EQ(host.between("gpu0", "gpu1"), "PIX 12 2");
  EXPECT_EQ(host.between("gpu2", "gpu3"), "PHB 10 2");
  EXPECT_EQ(host.between("gpu0", "gpu2"), "SYS 10 4");
  EXPECT_EQ(host.between("gpu1", "port0"), "PIX 12 3");
  EXPECT_EQ(host.between("gpu2", "port0"), "SYS 10 5");
  EXPECT_EQ(host.between("gpu2", "numa1"), "PHB 12 1");  // to memory, not to a device
}

// Gen 1 x1: 2.5 GT/s / 8 x 8/10 (encoding) x 3/4 = 0.1875 GB/s (NCCL: 15/100 Gbit/s x 10 / 8); the port has
// 0.125.
TEST(TopologyPaths, Laptop) {
  const Paths host(test::laptop());
  EXPECT_EQ(host.between("numa0", "port0"), "PHB 0.125 2");
}

TEST(TopologyPaths, SeveralPciSwitches) {
  test::HostBuilder builder;
  const int numa = builder.numaNode("AuthenticAMD", 25, 1);
  const int top = builder.bridge(numa, test::kGen4x16);
  const int left = builder.bridge(top, test::kGen4x16);
  const int right = builder.bridge(top, test::kGen3x16);
  builder.gpu(left, test::kGen4x16, 80);
  builder.gpu(left, test::kGen4x16, 80);
  builder.gpu(right, test::kGen4x16, 80);
  builder.gpu(numa, test::kGen4x16, 80);
  const int aside = builder.bridge(numa, test::kGen4x16);
  builder.gpu(aside, test::kGen4x16, 80);
  builder.topology.peer_switches = {{left, aside}};
  const Paths host(builder.topology);
  EXPECT_EQ(host.between("gpu0", "gpu1"), "PIX 24 2");
  EXPECT_EQ(host.between("gpu0", "gpu2"), "PXB 12 4");
  EXPECT_EQ(host.between("gpu0", "gpu3"), "PHB 24 4");
  EXPECT_EQ(host.between("gpu0", "gpu4"), "PXB 24 3");  // by the link between the switches
  EXPECT_EQ(host.between("gpu2", "gpu4"), "PXB 12 5");
}

// As Grace Hopper: the GPU by 10 links of 44.7 GB/s to its CPU, where a NIC of 400 Gbit/s hangs by Gen 5 x16
// (48).
TEST(TopologyPaths, CoherentCpus) {
  constexpr PciLink kGen5x16{.gtransfers_per_s = 32, .width = 16};
  test::HostBuilder builder;
  for (int i = 0; i < 2; ++i) {
    const int numa = builder.numaNode("ARM", 0, 0);
    builder.topology.nodes[at(numa)].cpu.architecture = "arm64";
    const int gpu = builder.gpu(numa, kGen5x16, 90);
    builder.nic(numa, kGen5x16, 400000);
    builder.topology.nvlinks.push_back({gpu, numa, 10, 44.7, true});
    builder.topology.nvlinks.push_back({numa, gpu, 10, 44.7, true});
  }
  const Paths host(builder.topology);
  EXPECT_EQ(host.between("gpu0", "numa0"), "C2C 447 1");
  EXPECT_EQ(host.between("numa0", "gpu0"), "C2C 447 1");
  EXPECT_EQ(host.between("gpu0", "port0"), "P2C 48 3");
  EXPECT_EQ(host.between("port0", "gpu0"), "P2C 48 3");
  EXPECT_EQ(host.between("gpu0", "port1"), "SYS 6 4");
  EXPECT_EQ(host.between("gpu0", "gpu1"), "SYS 6 3");
}

TEST(TopologyPaths, CardsWithoutAPlaceAreNoLimit) {
  test::HostBuilder builder;
  const int numa = builder.numaNode("AuthenticAMD", 25, 1);
  builder.nic(numa, {}, 400000);
  builder.topology.nodes.at(1).bus_id.clear();
  EXPECT_EQ(Paths(builder.topology).between("numa0", "port0"), "PHB 50 2");
}

TEST(TopologyPaths, NvLinksOfUnlikeGpus) {
  test::HostBuilder builder;
  const int numa = builder.numaNode("AuthenticAMD", 25, 1);
  const int first = builder.gpu(numa, test::kGen4x16, 90);
  builder.nvlinks(first, builder.gpu(numa, test::kGen4x16, 60), 2);
  builder.topology.nvlinks.push_back({.from = first, .to = 2, .count = 1, .gbytes_per_s = 5});
  const Paths host(builder.topology);
  EXPECT_EQ(host.between("gpu0", "gpu1"), "NVL 41 1");  // two of 18, and one of 5
  EXPECT_EQ(host.between("gpu1", "gpu0"), "NVL 36 1");
}

TEST(Bandwidths, AsNcclHasThem) {
  EXPECT_EQ(nvlinkGBytes(0), 20);
  EXPECT_EQ(nvlinkGBytes(60), 18);
  EXPECT_EQ(nvlinkGBytes(86), 12);
  EXPECT_EQ(nvlinkGBytes(89), 20);
  EXPECT_EQ(nvlinkGBytes(90), 20.6);
  EXPECT_EQ(nvlinkGBytes(120), 40.1);
  // graph/topo.cc: 15, 30, 60, 120, 240 and 480 x 100 Mbit/s per lane.
  const std::pair<double, double> per_lane[] = {{2.5, 1.5}, {5, 3}, {8, 6}, {16, 12}, {32, 24}, {64, 48}};
  for (const auto& [transfers, gbits] : per_lane) {
    EXPECT_DOUBLE_EQ(pciGBytes({.gtransfers_per_s = transfers, .width = 4}), gbits * 4 / 8) << transfers;
  }
  EXPECT_EQ(pciGBytes({}), 12);
  const auto intel = [](int model) {
    return socketGBytes({.architecture = "x86_64", .vendor = "GenuineIntel", .family = 6, .model = model});
  };
  EXPECT_EQ(intel(0x4f), 6);
  EXPECT_EQ(intel(0x55), 10);
  EXPECT_EQ(intel(0x6a), 10);
  EXPECT_EQ(intel(0x8f), 22);
  EXPECT_EQ(intel(0xad), 40);
  EXPECT_EQ(intel(0xcf), 40);
  EXPECT_EQ(socketGBytes({.architecture = "ppc64"}), 32);
  EXPECT_EQ(socketGBytes({.architecture = "arm64"}), 6);
  EXPECT_EQ(socketGBytes({.vendor = "AuthenticAMD"}), 16);
  EXPECT_EQ(netGBytes({.mbits_per_s = 400000}), 50);
  EXPECT_EQ(netGBytes({}), 1.25);
}

/// All simple paths by the definition of the header, tried one by one.
class Oracle {
 public:
  Oracle(const Topology& topology, const TopologyPaths& paths) : topology_(topology), paths_(paths) {}

  /// The best from `from` to `to`: class, width, nodes.
  std::tuple<PathClass, double, Nodes> best(int from, int to) {
    best_ = {PathClass::dis, 0, {}};
    from_ = from;
    to_ = to;
    if (from == to) return {PathClass::loc, kLocalGBytes, {}};
    std::vector<int> edges;
    walk(from, edges);
    return best_;
  }

 private:
  TopologyKind kind(int node) const { return topology_.nodes[at(node)].kind; }

  void walk(int node, std::vector<int>& edges) {
    if (node == to_) return consider(edges);
    for (int i = 0; i < static_cast<int>(paths_.edges().size()); ++i) {
      const Edge& edge = paths_.edges()[at(i)];
      if (edge.from != node || edge.to == from_) continue;
      if (std::ranges::any_of(edges, [&](int e) { return paths_.edges()[at(e)].to == edge.to; })) continue;
      edges.push_back(i);
      walk(edge.to, edges);
      edges.pop_back();
    }
  }

  void consider(const std::vector<int>& edges) {
    PathClass worst = PathClass::loc;
    double width = kLocalGBytes;
    bool has_c2c = false;
    bool by_gpu = false;
    Nodes nodes;
    for (const int i : edges) {
      const Edge& edge = paths_.edges()[at(i)];
      worst = std::max(worst, classOf(edge));
      width = std::min(width, edge.gbytes_per_s);
      has_c2c = has_c2c || edge.kind == Edge::Kind::c2c;
      by_gpu = by_gpu || (edge.to != to_ && kind(edge.to) == TopologyKind::gpu);
      nodes.push_back(edge.to);
    }
    if (by_gpu) {
      const bool is_nvb = edges.size() == 2 && worst == PathClass::nvl && kind(from_) == TopologyKind::gpu &&
                          kind(to_) == TopologyKind::gpu;
      if (!is_nvb) return;
      worst = PathClass::nvb;
    }
    if (has_c2c && worst == PathClass::phb && (isNic(from_) || isNic(to_))) worst = PathClass::p2c;
    const auto rank = [](const auto& path) {
      const auto& [path_class, so_wide, through] = path;
      return std::tuple(path_class, -so_wide, through.size(), through);
    };
    const std::tuple candidate(worst, width, nodes);
    if (rank(candidate) < rank(best_)) best_ = candidate;
  }

  bool isNic(int node) const { return kind(node) == TopologyKind::nic || kind(node) == TopologyKind::net; }

  PathClass classOf(const Edge& edge) const {
    if (edge.kind == Edge::Kind::net) return PathClass::loc;
    if (edge.kind == Edge::Kind::nvlink) return PathClass::nvl;
    if (edge.kind == Edge::Kind::c2c) return PathClass::c2c;
    if (edge.kind == Edge::Kind::socket) return PathClass::sys;
    const TopologyKind ends[] = {kind(edge.from), kind(edge.to)};
    if (std::ranges::count(ends, TopologyKind::numa_node) > 0) return PathClass::phb;
    return std::ranges::count(ends, TopologyKind::pci_bridge) == 2 ? PathClass::pxb : PathClass::pix;
  }

  const Topology& topology_;
  const TopologyPaths& paths_;
  std::tuple<PathClass, double, Nodes> best_;
  int from_ = kNoNode;
  int to_ = kNoNode;
};

Topology randomHost(std::mt19937& random) {
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto link = [&] { return PciLink{.gtransfers_per_s = 8.0 * (1 + below(2)), .width = 8 << below(2)}; };
  test::HostBuilder builder;
  std::vector<int> roots, bridges, gpus;
  const int numa_nodes = 1 + below(2);
  for (int i = 0; i < numa_nodes; ++i) roots.push_back(builder.numaNode("AuthenticAMD", 25, 1));
  for (int i = below(4); i > 0; --i) {
    roots.push_back(builder.bridge(roots[at(below(static_cast<int>(roots.size())))], link()));
    bridges.push_back(roots.back());
  }
  const auto anywhere = [&] { return roots[at(below(static_cast<int>(roots.size())))]; };
  for (int i = below(5); i > 0; --i) gpus.push_back(builder.gpu(anywhere(), link(), 80));
  for (int i = below(3); i > 0; --i) builder.nic(anywhere(), link(), 100000 * (1 + below(2)));
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus.size(); ++b) {
      if (below(2) == 0) builder.nvlinks(gpus[a], gpus[b], 1 + below(3));
    }
  }
  const bool with_c2c = below(3) == 0;
  if (!gpus.empty() && with_c2c) {
    const int numa = builder.topology.numaOf(gpus[0]);
    builder.topology.nvlinks.push_back({gpus[0], numa, 10, 20, true});
    builder.topology.nvlinks.push_back({numa, gpus[0], 10, 20, true});
  } else if (bridges.size() >= 2 && below(2) == 0) {
    builder.topology.peer_switches.push_back({bridges[0], bridges[1]});
  }
  if (gpus.size() >= 2 && below(3) == 0) {
    const int nvswitch = builder.nvSwitch();
    for (const int gpu : gpus) builder.nvlinks(gpu, nvswitch, 1 + below(3));
  }
  return std::move(builder.topology);
}

TEST(TopologyPaths, AreTheBestOfAll) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    const Topology topology = randomHost(random);
    ASSERT_NO_THROW(validate(topology)) << "seed " << seed;
    const TopologyPaths paths(topology);
    Oracle oracle(topology, paths);
    const int size = static_cast<int>(topology.nodes.size());
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        const auto [path_class, width, nodes] = oracle.best(from, to);
        const Path& path = paths.between(from, to);
        ASSERT_EQ(path.path_class, path_class) << "seed " << seed << ", " << from << " to " << to;
        ASSERT_EQ(path.gbytes_per_s, width) << "seed " << seed << ", " << from << " to " << to;
        ASSERT_EQ(nodesOf(paths, path), nodes) << "seed " << seed << ", " << from << " to " << to;
      }
    }
  }
}

TEST(TopologyPaths, ManyNodes) {
  test::HostBuilder builder;
  const int numa = builder.numaNode("AuthenticAMD", 25, 1);
  for (int i = 0; i < 16; ++i) {
    const int bridge = builder.bridge(numa, test::kGen4x16);
    for (int j = 0; j < 12; ++j) builder.gpu(bridge, test::kGen4x16, 80);
    for (int j = 0; j < 2; ++j) builder.nic(bridge, test::kGen4x16, 100000);
  }
  for (int i = 0; i < 1000; ++i) builder.nic(numa, {}, 1000);
  const Topology topology = std::move(builder.topology);
  const TopologyPaths paths(topology);
  for (const int gpu : topology.all(TopologyKind::gpu)) {
    EXPECT_EQ(paths.between(gpu, numa).path_class, PathClass::phb);
  }
}

}  // namespace
}  // namespace tutti
