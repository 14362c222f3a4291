#include "tools/topo/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "runtime/topology/notation.h"
#include "tools/topo/tree.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr const char* kMissing = "missing";

/// What is compared of a node, by name. The same names in the same order for every node of a kind.
using Properties = std::vector<std::pair<const char*, std::string>>;

std::string numaWords(const Topology& topology, int node) {
  const int numa = topology.numaOf(node);
  return numa == kNoNode ? "none" : std::to_string(nodeAt(topology, numa).cpu.numa);
}

/// "GPU 1: 4, NVSwitch 0: 8".
std::string nvlinkWords(const TopologyPaths& paths, int gpu) {
  std::string words;
  for (const NvlinkSum& sum : nvlinksOf(paths, gpu))
    words +=
        fmt::format("{}{}: {}", words.empty() ? "" : ", ", shortLabel(paths.topology(), sum.to), sum.count);
  return words.empty() ? "none" : words;
}

std::string parentWords(const Topology& topology, int node) {
  const int parent = nodeAt(topology, node).parent;
  return parent == kNoNode ? "nothing" : shortLabel(topology, parent);
}

void addLink(Properties& properties, const TopologyPaths& paths, int node) {
  const TopologyNode& it = nodeAt(paths.topology(), node);
  const std::string trained = trainedWords(it.link);
  properties.emplace_back("PCI link", trained.empty() ? "unknown" : trained);
  properties.emplace_back("PCI link could do", mostWords(it.link));
  properties.emplace_back("NUMA node", numaWords(paths.topology(), node));
  properties.emplace_back("hangs at", parentWords(paths.topology(), node));
}

/// "10de:2330", as lspci -n shows it.
std::string deviceWords(const PciIdentity& pci) {
  return pci.vendor == 0 ? "" : fmt::format("{:04x}:{:04x}", pci.vendor, pci.device);
}

/// Those that a switch has a link with that is not the way to the root.
std::string peerSwitchWords(const Topology& topology, int node) {
  std::string words;
  for (const PeerSwitches& pair : topology.peer_switches) {
    if (pair.a != node && pair.b != node) continue;
    words += (words.empty() ? "" : ", ") + nodeAt(topology, pair.a == node ? pair.b : pair.a).bus_id;
  }
  return words.empty() ? "none" : words;
}

Properties propertiesOf(const TopologyPaths& paths, int node) {
  const TopologyNode& it = nodeAt(paths.topology(), node);
  Properties properties{{"bus id", it.bus_id}, {"PCI device", deviceWords(it.pci)}};
  switch (it.kind) {
    case TopologyKind::numa_node:
      properties = {{"CPUs", listOfCpus(it.cpu.cpus)},
                    {"socket", it.cpu.package < 0 ? "" : std::to_string(it.cpu.package)},
                    {"last-level caches", std::to_string(it.cpu.caches.size())},
                    {"processor", processorWords(it.cpu)}};
      break;
    case TopologyKind::gpu:
      addLink(properties, paths, node);
      properties.emplace_back("CUDA device", it.gpu.device < 0 ? "" : std::to_string(it.gpu.device));
      properties.emplace_back("model", it.gpu.model);
      properties.emplace_back("compute capability", capabilityWords(it.gpu));
      properties.emplace_back("GPUDirect RDMA", it.gpu.reached_by_rdma ? "yes" : "no");
      properties.emplace_back("NVLinks", nvlinkWords(paths, node));
      break;
    case TopologyKind::net:
      properties.emplace_back("name", it.net.name);
      properties.emplace_back("speed", portSpeedWords(it.net));
      properties.emplace_back("hangs at", parentWords(paths.topology(), node));
      properties.emplace_back("GPUDirect RDMA", it.net.reaches_gpus ? "yes" : "no");
      break;
    case TopologyKind::nic:
      addLink(properties, paths, node);
      break;
    case TopologyKind::pci_bridge:
      addLink(properties, paths, node);
      properties.emplace_back("links to other switches", peerSwitchWords(paths.topology(), node));
      break;
    case TopologyKind::nvswitch:
      break;
  }
  return properties;
}

/// By what a node is the same in both hosts; empty: by order only.
std::string identityOf(const Topology& topology, int node) {
  const TopologyNode& it = nodeAt(topology, node);
  if (it.kind == TopologyKind::numa_node) return std::to_string(it.cpu.numa);
  if (it.kind != TopologyKind::net) return it.bus_id;
  // Ports have names that are given anew at each start; their card and number are not.
  const std::string card = it.parent == kNoNode ? "" : nodeAt(topology, it.parent).bus_id;
  return card.empty() ? it.net.name : fmt::format("{} {}", card, it.net.port);
}

/// Nodes of `kind`, but bridges that lead nowhere.
std::vector<int> comparedNodes(const TopologyPaths& paths, TopologyKind kind) {
  if (kind == TopologyKind::gpu) return gpusInOrder(paths.topology());
  if (kind != TopologyKind::pci_bridge) return paths.topology().all(kind);
  std::vector<int> bridges;
  const auto collect = [&](const auto& again, const std::vector<Hanging>& all) -> void {
    for (const Hanging& hanging : all) {
      if (nodeAt(paths.topology(), hanging.node).kind == kind) bridges.push_back(hanging.node);
      again(again, hanging.children);
    }
  };
  for (const int root : rootsOf(paths.topology())) collect(collect, hangingAt(paths, root, Bridges::all));
  return bridges;
}

/// Pairs of nodes of one kind; kNoNode stands for what one side lacks.
std::vector<std::pair<int, int>> matched(const TopologyPaths& a, const TopologyPaths& b, TopologyKind kind) {
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> left = comparedNodes(b, kind);
  for (const int node : comparedNodes(a, kind)) {
    const std::string identity = identityOf(a.topology(), node);
    const auto same = std::ranges::find_if(
        left, [&](int other) { return !identity.empty() && identityOf(b.topology(), other) == identity; });
    pairs.emplace_back(node, same == left.end() ? kNoNode : *same);
    if (same != left.end()) left.erase(same);
  }
  for (auto& [node, other] : pairs) {
    if (other != kNoNode || left.empty()) continue;
    other = left.front();
    left.erase(left.begin());
  }
  for (const int other : left) pairs.emplace_back(kNoNode, other);
  return pairs;
}

std::string labelOf(const TopologyPaths& paths, int node) {
  const std::string& bus_id = nodeAt(paths.topology(), node).bus_id;
  const std::string label = shortLabel(paths.topology(), node);
  return bus_id.empty() || label.ends_with(bus_id) ? label : fmt::format("{} ({})", label, bus_id);
}

void compareNodes(const TopologyPaths& a, int in_a, const TopologyPaths& b, int in_b,
                  std::vector<Difference>& differences) {
  if (in_a == kNoNode || in_b == kNoNode) {
    const bool is_in_a = in_a != kNoNode;
    differences.push_back({.part = is_in_a ? labelOf(a, in_a) : labelOf(b, in_b),
                           .in_a = is_in_a ? "present" : kMissing,
                           .in_b = is_in_a ? kMissing : "present"});
    return;
  }
  const Properties ours = propertiesOf(a, in_a);
  const Properties theirs = propertiesOf(b, in_b);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].second == theirs[i].second) continue;
    const auto words = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
    differences.push_back({.part = fmt::format("{}: {}", labelOf(a, in_a), ours[i].first),
                           .in_a = words(ours[i].second),
                           .in_b = words(theirs[i].second)});
  }
}

const std::string& nameOf(const Machine& machine) { return machine.cluster.hosts.front().name; }

/// Collectives whose predicted bandwidths differ by more than rounding.
std::vector<Difference> bandwidthDifferences(const Machine& a, const Machine& b) {
  std::vector<Difference> differences;
  for (const PredictedBandwidth& ours : a.bandwidths) {
    const auto theirs = std::ranges::find(b.bandwidths, ours.collective, &PredictedBandwidth::collective);
    if (theirs == b.bandwidths.end()) continue;
    const auto words = [](double speed) { return speed > 0 ? gbytesWords(speed) : std::string("-"); };
    std::string in_a = words(ours.bus_gbytes_per_s);
    std::string in_b = words(theirs->bus_gbytes_per_s);
    if (in_a == in_b) continue;
    differences.push_back({.part = fmt::format("{}: bus bandwidth", name(ours.collective)),
                           .in_a = std::move(in_a),
                           .in_b = std::move(in_b)});
  }
  return differences;
}

std::string tableOf(const std::vector<Difference>& differences, const std::string& a, const std::string& b) {
  std::size_t part = 0;
  std::size_t in_a = a.size();
  for (const Difference& it : differences) {
    part = std::max(part, it.part.size());
    in_a = std::max(in_a, it.in_a.size());
  }
  std::string text = fmt::format("  {:{}}  {:<{}}  {}\n", "", part, a, in_a, b);
  for (const Difference& it : differences)
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", it.part, part, it.in_a, in_a, it.in_b);
  return text;
}

nlohmann::ordered_json jsonOf(const std::vector<Difference>& differences) {
  auto json = nlohmann::ordered_json::array();
  for (const Difference& it : differences)
    json.push_back({{"part", it.part}, {"a", it.in_a}, {"b", it.in_b}});
  return json;
}

}  // namespace

std::vector<Difference> differencesOf(const TopologyPaths& a, const TopologyPaths& b) {
  std::vector<Difference> differences;
  for (const TopologyKind kind : {TopologyKind::numa_node, TopologyKind::pci_bridge, TopologyKind::gpu,
                                  TopologyKind::nvswitch, TopologyKind::nic, TopologyKind::net}) {
    for (const auto& [in_a, in_b] : matched(a, b, kind)) compareNodes(a, in_a, b, in_b, differences);
  }
  return differences;
}

std::string compareText(const Machine& a, const Machine& b) {
  const std::vector<Difference> differences = differencesOf(a.paths.front(), b.paths.front());
  if (differences.empty()) return fmt::format("{} and {} are alike.\n", nameOf(a), nameOf(b));
  std::string text = fmt::format("{} between {} and {}:\n", countWords(differences.size(), "difference"),
                                 nameOf(a), nameOf(b)) +
                     tableOf(differences, nameOf(a), nameOf(b));
  const std::vector<Difference> bandwidths = bandwidthDifferences(a, b);
  if (!bandwidths.empty())
    text += "\nPredicted, for a job on such hosts:\n" + tableOf(bandwidths, nameOf(a), nameOf(b));
  return text;
}

nlohmann::ordered_json compareJson(const Machine& a, const Machine& b) {
  nlohmann::ordered_json json;
  json["format"] = 1;
  json["version"] = TUTTI_VERSION;
  json["a"] = nameOf(a);
  json["b"] = nameOf(b);
  json["differences"] = jsonOf(differencesOf(a.paths.front(), b.paths.front()));
  json["bandwidth"] = jsonOf(bandwidthDifferences(a, b));
  return json;
}

}  // namespace tutti::topo
