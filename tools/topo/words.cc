#include "tools/topo/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tutti::topo {
namespace {

std::string speedWords(double gtransfers_per_s, int width) {
  std::string words = gtransfers_per_s > 0 ? fmt::format("{:g} GT/s", gtransfers_per_s) : "";
  if (width > 0) words += fmt::format("{}x{}", words.empty() ? "" : " ", width);
  return words;
}

int placeOf(const std::vector<int>& nodes, int node) {
  return static_cast<int>(std::ranges::find(nodes, node) - nodes.begin());
}

}  // namespace

std::string shortGBytes(double gbytes_per_s) {
  constexpr double kWhole = 100;
  return gbytes_per_s >= kWhole ? fmt::format("{:.0f}", gbytes_per_s) : fmt::format("{:.3g}", gbytes_per_s);
}

std::string gbytesWords(double gbytes_per_s) { return shortGBytes(gbytes_per_s) + " GB/s"; }

std::string trainedWords(const PciLink& link) { return speedWords(link.gtransfers_per_s, link.width); }

std::string mostWords(const PciLink& link) { return speedWords(link.most_gtransfers_per_s, link.most_width); }

bool isBelowMost(const PciLink& link) {
  const bool slower = link.gtransfers_per_s > 0 && link.gtransfers_per_s < link.most_gtransfers_per_s;
  return slower || (link.width > 0 && link.width < link.most_width);
}

std::string portSpeedWords(const NetDetails& net) {
  constexpr double kMbits = 1000;
  return net.mbits_per_s > 0 ? fmt::format("{:g} Gb/s", net.mbits_per_s / kMbits) : "speed unknown";
}

std::string processorWords(const CpuDetails& cpu) {
  std::string words = cpu.architecture;
  if (!cpu.vendor.empty()) words += (words.empty() ? "" : " ") + cpu.vendor;
  if (cpu.family > 0)
    words += fmt::format("{}family {} model {}", words.empty() ? "" : ", ", cpu.family, cpu.model);
  return words;
}

std::string capabilityWords(const GpuDetails& gpu) {
  return gpu.compute_capability > 0 ? fmt::format("sm_{}", gpu.compute_capability) : "";
}

std::string countWords(std::size_t count, const std::string& what) {
  const bool hisses = what.ends_with("ch");
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : (hisses ? "es" : "s"));
}

double socketGBytesOf(const TopologyPaths& paths, int node) {
  double most = 0;
  for (const Edge& edge : paths.edges()) {
    if (edge.from == node && edge.kind == Edge::Kind::socket) most = std::max(most, edge.gbytes_per_s);
  }
  return most;
}

double linkGBytes(const TopologyPaths& paths, int node) {
  const int parent = nodeAt(paths.topology(), node).parent;
  double most = 0;
  for (const Edge& edge : paths.edges()) {
    const bool is_link = edge.from == node && edge.to == parent && edge.kind == Edge::Kind::pci;
    if (is_link) most = std::max(most, edge.gbytes_per_s);
  }
  return most;
}

std::vector<NvlinkSum> nvlinksOf(const TopologyPaths& paths, int node) {
  std::map<int, NvlinkSum> sums;
  for (const NvLinks& links : paths.topology().nvlinks) {
    if (links.from != node) continue;
    NvlinkSum& sum = sums[links.to];
    sum.to = links.to;
    sum.count += links.count;
    sum.is_c2c = links.is_c2c;
  }
  for (const Edge& edge : paths.edges()) {
    const bool is_nvlink = edge.kind == Edge::Kind::nvlink || edge.kind == Edge::Kind::c2c;
    if (edge.from == node && is_nvlink && sums.contains(edge.to))
      sums[edge.to].gbytes_per_s += edge.gbytes_per_s;
  }
  std::vector<NvlinkSum> result;
  result.reserve(sums.size());
  for (const auto& [to, sum] : sums) result.push_back(sum);
  return result;
}

std::vector<int> gpusInOrder(const Topology& topology) {
  std::vector<int> gpus = topology.all(TopologyKind::gpu);
  std::ranges::stable_sort(gpus, {}, [&](int gpu) {
    return static_cast<unsigned>(nodeAt(topology, gpu).gpu.device);  // -1 comes last
  });
  return gpus;
}

std::string shortLabel(const Topology& topology, int node) {
  const TopologyNode& it = nodeAt(topology, node);
  switch (it.kind) {
    case TopologyKind::numa_node:
      return fmt::format("NUMA node {}", it.cpu.numa);
    case TopologyKind::gpu:
      return fmt::format("GPU {}", it.gpu.device >= 0 ? it.gpu.device : placeOf(gpusInOrder(topology), node));
    case TopologyKind::nvswitch:
      return fmt::format("NVSwitch {}", placeOf(topology.all(it.kind), node));
    case TopologyKind::nic:
      return fmt::format("NIC {}", placeOf(topology.all(it.kind), node));
    case TopologyKind::net:
      if (it.net.name.empty()) return fmt::format("port {}", placeOf(topology.all(it.kind), node));
      return it.net.port > 0 ? fmt::format("{}:{}", it.net.name, it.net.port) : it.net.name;
    case TopologyKind::pci_bridge:
      break;
  }
  return "PCI switch " + it.bus_id;
}

const char* wordOf(TopologyKind kind) {
  switch (kind) {
    case TopologyKind::numa_node:
      return "numa_node";
    case TopologyKind::pci_bridge:
      return "pci_bridge";
    case TopologyKind::gpu:
      return "gpu";
    case TopologyKind::nvswitch:
      return "nvswitch";
    case TopologyKind::nic:
      return "nic";
    case TopologyKind::net:
      return "port";
  }
  return "";
}

}  // namespace tutti::topo
