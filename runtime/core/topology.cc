#include "runtime/core/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <unordered_set>

namespace tutti {
namespace {

[[noreturn]] void fail(const std::string& reason) { throw std::invalid_argument(reason); }

std::size_t at(int node) { return static_cast<std::size_t>(node); }

bool holds(TopologyKind parent, TopologyKind child) {
  switch (parent) {
    case TopologyKind::numa_node:
    case TopologyKind::pci_bridge:
      return child != TopologyKind::numa_node && child != TopologyKind::net;
    case TopologyKind::nic:
      return child == TopologyKind::net;
    default:
      return false;
  }
}

void checkParent(const Topology& topology, int index) {
  const TopologyNode& node = topology.nodes[at(index)];
  if (node.parent == kNoNode) {
    if (node.kind == TopologyKind::numa_node || node.kind == TopologyKind::nvswitch) return;
    fail(topology.label(index) + " hangs at nothing");
  }
  if (node.parent < 0 || node.parent >= index) {
    fail(topology.label(index) + " hangs at something that comes later");
  }
  if (!holds(topology.nodes[at(node.parent)].kind, node.kind)) {
    fail(fmt::format("{} cannot hang at {}", topology.label(index), topology.label(node.parent)));
  }
}

void checkNvLinks(const Topology& topology, const NvLinks& links) {
  const int size = static_cast<int>(topology.nodes.size());
  if (links.from < 0 || links.from >= size || links.to < 0 || links.to >= size) {
    fail(fmt::format("an NVLink from node {} to node {} of {}", links.from, links.to, size));
  }
  const std::string text =
      fmt::format("an NVLink from {} to {}", topology.label(links.from), topology.label(links.to));
  const TopologyKind from = topology.nodes[at(links.from)].kind;
  const TopologyKind to = topology.nodes[at(links.to)].kind;
  const auto has_nvlinks = [&links](TopologyKind kind) {
    return kind == TopologyKind::gpu || kind == TopologyKind::nvswitch ||
           (links.is_c2c && kind == TopologyKind::numa_node);
  };
  if (!has_nvlinks(from) || !has_nvlinks(to)) fail(text + ": only GPUs and NVSwitches have them");
  if (links.from == links.to) fail(text + ": to itself");
  if (links.count < 1) fail(fmt::format("{}: {} of them", text, links.count));
}

}  // namespace

std::string_view name(TopologyKind kind) {
  constexpr std::string_view kNames[] = {"NUMA node", "PCI bridge", "GPU", "NVSwitch", "NIC", "port"};
  return kNames[static_cast<int>(kind)];
}

std::vector<int> Topology::all(TopologyKind kind) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == kind) found.push_back(static_cast<int>(i));
  }
  return found;
}

int Topology::find(std::string_view bus_id) const {
  if (bus_id.empty()) return kNoNode;
  const auto it = std::ranges::find(nodes, bus_id, &TopologyNode::bus_id);
  return it == nodes.end() ? kNoNode : static_cast<int>(it - nodes.begin());
}

int Topology::numaOf(int node) const {
  while (node != kNoNode && nodes[at(node)].kind != TopologyKind::numa_node) node = nodes[at(node)].parent;
  return node;
}

bool Topology::isNumaTold(int node) const {
  for (; node != kNoNode; node = nodes[at(node)].parent) {
    if (nodes[at(node)].is_guessed) return false;
  }
  return true;
}

std::vector<int> Topology::orderByName() const {
  const auto nameOf = [this](int index) {
    const TopologyNode& node = nodes[static_cast<std::size_t>(index)];
    const bool is_on_card = node.kind == TopologyKind::net && node.parent != kNoNode;
    const TopologyNode& device = is_on_card ? nodes[static_cast<std::size_t>(node.parent)] : node;
    return std::tuple<bool, const int&, const std::string&, const std::string&, const int&>(
        node.kind == TopologyKind::nvswitch, node.cpu.numa, device.bus_id, node.net.name, node.net.port);
  };
  std::vector<int> sorted(nodes.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(sorted, {}, nameOf);
  std::vector<int> order(nodes.size());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    order[static_cast<std::size_t>(sorted[i])] = static_cast<int>(i);
  return order;
}

std::string Topology::label(int node) const {
  const TopologyNode& it = nodes[at(node)];
  const std::string place = it.bus_id.empty() ? "" : fmt::format(" ({})", it.bus_id);
  switch (it.kind) {
    case TopologyKind::numa_node:
      return fmt::format("NUMA node {}", it.cpu.numa);
    case TopologyKind::gpu:
      return it.gpu.device < 0 ? "GPU" + place : fmt::format("GPU {}{}", it.gpu.device, place);
    case TopologyKind::net:
      if (it.net.name.empty()) return fmt::format("port {}", it.net.device);
      return it.net.port > 0 ? fmt::format("{}:{}", it.net.name, it.net.port) : it.net.name;
    default:
      return fmt::format("{}{}", name(it.kind), place);
  }
}

Topology withoutIdentity(Topology topology) {
  for (TopologyNode& node : topology.nodes) {
    node.net.guid = 0;
    node.gpu.rank = -1;
  }
  return topology;
}

void validate(const Topology& topology) {
  std::unordered_set<std::string_view> bus_ids;
  std::unordered_set<int> numa;
  for (int i = 0; i < static_cast<int>(topology.nodes.size()); ++i) {
    const TopologyNode& node = topology.nodes[at(i)];
    checkParent(topology, i);
    if (!node.bus_id.empty() && !bus_ids.insert(node.bus_id).second) {
      fail(fmt::format("two devices have the bus id {}", node.bus_id));
    }
    if (node.kind == TopologyKind::numa_node && !numa.insert(node.cpu.numa).second) {
      fail(fmt::format("two NUMA nodes have the number {}", node.cpu.numa));
    }
  }
  for (const NvLinks& links : topology.nvlinks) checkNvLinks(topology, links);
  for (const PeerSwitches& pair : topology.peer_switches) {
    const auto is_bridge = [&topology](int node) {
      return node >= 0 && node < static_cast<int>(topology.nodes.size()) &&
             topology.nodes[at(node)].kind == TopologyKind::pci_bridge;
    };
    if (!is_bridge(pair.a) || !is_bridge(pair.b) || pair.a == pair.b) {
      fail("a link between PCI switches that does not end at two of them");
    }
  }
}

}  // namespace tutti
