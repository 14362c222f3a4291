// The picture: well-formed, every part once, nothing on top of anything else. For the hosts of builders.h and
// for random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/topology/builders.h"
#include "tools/topo/layout.h"
#include "tools/topo/machine.h"
#include "tools/topo/svg_picture.h"

namespace tutti::topo {
namespace {

using test::HostBuilder;

/// One to four NUMA nodes, each with a random tree of bridges, GPUs and NICs; NVLinks between random GPUs.
Topology randomHost(unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
  HostBuilder host;
  std::vector<int> gpus;
  const int numa_nodes = 1 + draw(3);
  for (int i = 0; i < numa_nodes; ++i) {
    const int numa = host.numaNode("AuthenticAMD", 23, 49);
    // Every second host has sockets of two NUMA nodes.
    if (seed % 2 == 0) host.topology.nodes[static_cast<std::size_t>(numa)].cpu.package = i / 2;
    std::vector<int> parents{numa};
    for (int device = draw(7); device > 0; --device) {
      const int parent = parents[static_cast<std::size_t>(draw(static_cast<int>(parents.size()) - 1))];
      const int kind = draw(3);
      if (kind == 0) parents.push_back(host.bridge(parent, test::kGen4x16));
      if (kind == 1) host.nic(parent, test::kGen4x16, 100000);
      if (kind >= 2) gpus.push_back(host.gpu(parent, test::kGen4x16, 80));
    }
  }
  const bool has_switch = draw(2) == 0 && !gpus.empty();
  const int nvswitch = has_switch ? host.nvSwitch() : kNoNode;
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    if (has_switch) host.nvlinks(gpus[a], nvswitch, 12);
    for (std::size_t b = a + 1; b < gpus.size() && !has_switch; ++b) {
      if (draw(1) == 0) host.nvlinks(gpus[a], gpus[b], 1 + draw(3));
    }
  }
  return std::move(host.topology);
}

std::vector<Topology> someHosts() {
  std::vector<Topology> hosts{test::dgxLike(), test::nvlinkMesh4(), test::cubeMesh8(), test::pcieOnly4(),
                              test::laptop()};
  for (unsigned seed = 1; seed <= 60; ++seed) hosts.push_back(randomHost(seed));
  return hosts;
}

bool overlap(const Box& a, const Box& b) {
  constexpr double kTouch = 0.01;
  return a.x + kTouch < b.right() && b.x + kTouch < a.right() && a.y + kTouch < b.bottom() &&
         b.y + kTouch < a.bottom();
}

TEST(TopoLayout, DrawsEveryPartThatMattersOnce) {
  const std::vector<Topology> hosts = someHosts();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    SCOPED_TRACE("host " + std::to_string(i));
    const TopologyPaths paths(hosts[i]);
    const HostLayout layout = layOut(paths, 40);
    std::vector<int> seen;
    for (const PlacedNode& placed : layout.nodes) seen.push_back(placed.node);
    for (const int node : layout.left_out) {
      EXPECT_EQ(hosts[i].nodes[static_cast<std::size_t>(node)].kind, TopologyKind::pci_bridge);
      seen.push_back(node);
    }
    std::ranges::sort(seen);
    ASSERT_EQ(seen.size(), hosts[i].nodes.size());
    for (std::size_t node = 0; node < seen.size(); ++node) EXPECT_EQ(seen[node], static_cast<int>(node));
  }
}

TEST(TopoLayout, KeepsBoxesApartAndInside) {
  const std::vector<Topology> hosts = someHosts();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    SCOPED_TRACE("host " + std::to_string(i));
    const TopologyPaths paths(hosts[i]);
    const HostLayout layout = layOut(paths, 40);
    for (std::size_t a = 0; a < layout.nodes.size(); ++a) {
      const Box& box = layout.nodes[a].box;
      EXPECT_GT(box.width, 0);
      EXPECT_GE(box.x, 0);
      EXPECT_GE(box.y, 40);
      EXPECT_LE(box.right(), layout.width);
      EXPECT_LE(box.bottom(), layout.height);
      for (std::size_t b = a + 1; b < layout.nodes.size(); ++b) {
        EXPECT_FALSE(overlap(box, layout.nodes[b].box))
            << hosts[i].label(layout.nodes[a].node) << " and " << hosts[i].label(layout.nodes[b].node);
      }
    }
    for (const Bow& bow : layout.bows) EXPECT_LE(bow.top + bow.depth, layout.height);
  }
}

TEST(TopoLayout, HangsPartsBelowWhatTheyHangAt) {
  const std::vector<Topology> hosts = someHosts();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    SCOPED_TRACE("host " + std::to_string(i));
    const TopologyPaths paths(hosts[i]);
    const HostLayout layout = layOut(paths, 40);
    for (const PlacedNode& placed : layout.nodes) {
      int above = hosts[i].nodes[static_cast<std::size_t>(placed.node)].parent;
      while (above != kNoNode && layout.find(above) == nullptr)
        above = hosts[i].nodes[static_cast<std::size_t>(above)].parent;
      if (above == kNoNode) continue;
      const Box& parent = *layout.find(above);
      EXPECT_GE(placed.box.y, parent.bottom());
      // Straight lines need a parent above their middle.
      EXPECT_GE(placed.box.middle(), parent.x);
      EXPECT_LE(placed.box.middle(), parent.right());
    }
  }
}

/// Ids of the document, by how often they occur.
void collectIds(const pugi::xml_node& node, std::map<std::string, int>& ids) {
  if (const pugi::xml_attribute id = node.attribute("id")) ++ids[id.value()];
  for (const pugi::xml_node& child : node.children()) collectIds(child, ids);
}

TEST(TopoPicture, IsWellFormedAndNamesEveryPart) {
  std::vector<Topology> hosts = someHosts();
  hosts.resize(9);  // each is searched, too
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    SCOPED_TRACE("host " + std::to_string(i));
    const Topology host = hosts[i];
    const Machine machine = makeMachine({{"<a> & \"b\"", host}});
    pugi::xml_document document;
    const std::string svg = svgPicture(machine);
    const pugi::xml_parse_result parsed = document.load_string(svg.c_str());
    ASSERT_TRUE(parsed) << parsed.description();
    EXPECT_STREQ(document.document_element().name(), "svg");
    std::map<std::string, int> ids;
    collectIds(document, ids);
    const std::size_t left_out = layOut(machine.paths.front(), 40).left_out.size();
    EXPECT_EQ(ids.size(), host.nodes.size() - left_out);
    for (const auto& [id, count] : ids) EXPECT_EQ(count, 1) << id;
    for (const pugi::xpath_node& group : document.select_nodes("//g[@class='node' or @class='ring']"))
      EXPECT_NE(group.node().child("title").text().get(), std::string()) << "a part that says nothing";
    EXPECT_FALSE(svg.find("nan") != std::string::npos || svg.find("inf") != std::string::npos);
  }
}

TEST(TopoPicture, DrawsEveryRingOnceWithAStopPerRank) {
  const Machine machine = makeMachine({{"cube", test::cubeMesh8()}});
  std::set<std::vector<int>> orders;
  for (const HostChannel& channel : machine.search.rings.front().channels) orders.insert(channel.order);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svgPicture(machine).c_str()));
  const pugi::xpath_node_set rings = document.select_nodes("//g[@class='ring']");
  EXPECT_EQ(rings.size(), orders.size());
  for (const pugi::xpath_node& ring : rings) {
    EXPECT_EQ(ring.node().select_nodes(".//circle").size(), 8);
    EXPECT_EQ(ring.node().select_nodes(".//path[starts-with(@class, 'hop')]").size(), 8);
  }
}

TEST(TopoPicture, ShowsOneOfManyEqualHosts) {
  std::vector<NamedHost> hosts;
  hosts.reserve(40);
  for (int i = 0; i < 40; ++i) hosts.push_back({"node" + std::to_string(i), test::pcieOnly4()});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svgPicture(makeMachine(std::move(hosts))).c_str()));
  EXPECT_EQ(document.select_nodes("//text[@class='title']").size(), 1);
  EXPECT_STREQ(document.select_node("//text[@class='title']").node().text().get(),
               "node0 to node39 (40 hosts)");
}

}  // namespace
}  // namespace tutti::topo
