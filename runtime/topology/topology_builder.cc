#include "runtime/topology/topology_builder.h"

#include <algorithm>
#include <set>

namespace tutti {
namespace {

constexpr std::uint16_t kNvidia = 0x10de;

/// Gives devices without a number the smallest ones that are free, in order.
template <class Number>
void numberDevices(Topology& topology, TopologyKind kind, Number number) {
  std::set<int> taken;
  for (TopologyNode& node : topology.nodes) {
    if (node.kind == kind) taken.insert(number(node));
  }
  int next = 0;
  for (TopologyNode& node : topology.nodes) {
    if (node.kind != kind || number(node) != kUnnumbered) continue;
    while (taken.contains(next)) ++next;
    number(node) = next++;
  }
}

}  // namespace

bool isGpuClass(std::uint32_t device_class) { return device_class >> 16 == 0x03; }
bool isNicClass(std::uint32_t device_class) { return device_class >> 16 == 0x02; }
bool isBridgeClass(std::uint32_t device_class) { return device_class >> 8 == 0x0604; }
bool isNvSwitch(const PciIdentity& pci) {
  return pci.device_class >> 8 == 0x0680 && (pci.vendor == kNvidia || pci.vendor == 0);
}

int TopologyBuilder::add(TopologyNode node) {
  const int index = static_cast<int>(topology.nodes.size());
  if (!node.bus_id.empty()) by_bus_id_.emplace(node.bus_id, index);
  topology.nodes.push_back(std::move(node));
  return index;
}

int TopologyBuilder::find(const std::string& bus_id) const {
  const auto it = by_bus_id_.find(bus_id);
  return it == by_bus_id_.end() ? kNoNode : it->second;
}

bool TopologyBuilder::connect(const NvLinks& links) {
  int& count = links_[{links.from, links.to, links.is_c2c, links.gbytes_per_s}];
  count += links.count;
  return count <= kMostLinks;
}

int TopologyBuilder::nvSwitch() {
  if (nvswitch_ != kNoNode) return nvswitch_;
  const auto it = std::ranges::find(topology.nodes, TopologyKind::nvswitch, &TopologyNode::kind);
  nvswitch_ = it == topology.nodes.end() ? add({.kind = TopologyKind::nvswitch})
                                         : static_cast<int>(it - topology.nodes.begin());
  return nvswitch_;
}

void TopologyBuilder::connectSwitches(int a, int b) {
  topology.peer_switches.push_back({std::min(a, b), std::max(a, b)});
}

std::vector<std::pair<int, int>> TopologyBuilder::addOpposites() {
  std::set<std::pair<int, int>> directions;
  for (const auto& [key, count] : links_) directions.emplace(std::get<0>(key), std::get<1>(key));
  std::vector<std::pair<int, int>> missing;
  std::map<LinkKey, int> opposites;
  for (const auto& [key, count] : links_) {
    const auto& [from, to, is_c2c, gbytes_per_s] = key;
    if (directions.contains({to, from})) continue;
    if (missing.empty() || missing.back() != std::pair(to, from)) missing.emplace_back(to, from);
    opposites[{to, from, is_c2c, gbytes_per_s}] = count;
  }
  links_.merge(opposites);
  return missing;
}

std::vector<std::pair<int, int>> TopologyBuilder::complete() {
  numberDevices(topology, TopologyKind::gpu, [](TopologyNode& node) -> int& { return node.gpu.device; });
  numberDevices(topology, TopologyKind::net, [](TopologyNode& node) -> int& { return node.net.device; });
  std::vector<std::pair<int, int>> missing = addOpposites();
  for (const auto& [key, count] : links_) {
    const auto& [from, to, is_c2c, gbytes_per_s] = key;
    topology.nvlinks.push_back({from, to, count, gbytes_per_s, is_c2c});
  }
  auto& pairs = topology.peer_switches;
  const auto ends = [](const PeerSwitches& pair) { return std::pair(pair.a, pair.b); };
  std::ranges::sort(pairs, {}, ends);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return missing;
}

}  // namespace tutti
