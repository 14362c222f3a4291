#include "tools/topo/matrix_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/topology/notation.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

const char* meaningOf(PathClass path_class) {
  switch (path_class) {
    case PathClass::loc:
      return "inside one device";
    case PathClass::nvl:
      return "by so many NVLinks, to each other or to an NVSwitch";
    case PathClass::nvb:
      return "by NVLink through another GPU";
    case PathClass::c2c:
      return "to a CPU by its coherent link (NVLink-C2C)";
    case PathClass::pix:
      return "through one PCI switch";
    case PathClass::pxb:
      return "through several PCI switches, but no CPU";
    case PathClass::p2c:
      return "to a NIC through a CPU that hangs at the GPU by C2C";
    case PathClass::pxn:
      return "to a NIC through a GPU nearer to it, by NVLink";
    case PathClass::phb:
      return "through a CPU";
    case PathClass::sys:
      return "through several NUMA nodes, over the link between them";
    case PathClass::net:
      return "between hosts";
    case PathClass::dis:
      return "not at all";
  }
  return "";
}

int nvlinkCount(const TopologyPaths& paths, int from, int to) {
  const Path& path = paths.between(from, to);
  const int next = path.edges.empty() ? to : paths.edges()[static_cast<std::size_t>(path.edges.front())].to;
  int count = 0;
  for (const NvLinks& links : paths.topology().nvlinks) {
    if (links.from == from && links.to == next) count += links.count;
  }
  return count;
}

/// "GPU0", "NIC3", "NUMA1": columns are narrow.
std::string columnOf(const TopologyPaths& paths, int node) {
  const Topology& topology = paths.topology();
  const TopologyKind kind = nodeAt(topology, node).kind;
  if (kind == TopologyKind::net || kind == TopologyKind::nic) {
    const std::vector<int> endpoints = endpointsOf(topology);
    const auto first = std::ranges::find_if(endpoints, [&](int other) {
      const TopologyKind it = nodeAt(topology, other).kind;
      return it == TopologyKind::net || it == TopologyKind::nic;
    });
    return fmt::format("NIC{}", std::ranges::find(endpoints, node) - first);
  }
  if (kind == TopologyKind::numa_node) return fmt::format("NUMA{}", nodeAt(topology, node).cpu.numa);
  std::string label = shortLabel(topology, node);
  std::erase(label, ' ');
  return label;
}

using Table = std::vector<std::vector<std::string>>;

/// The first column to the left, the rest to the right.
std::string aligned(const Table& table) {
  std::vector<std::size_t> widths(table.front().size());
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    std::string line = fmt::format("  {:<{}}", row.front(), widths.front());
    for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += line + '\n';
  }
  return text;
}

Table classTable(const TopologyPaths& paths, const std::vector<int>& endpoints) {
  Table table{{""}};
  for (const int to : endpoints) table.front().push_back(columnOf(paths, to));
  table.front().insert(table.front().end(), {"NUMA", "CPUs"});
  for (const int from : endpoints) {
    table.push_back({columnOf(paths, from)});
    for (const int to : endpoints) table.back().push_back(connectionWords(paths, from, to));
    const int numa = paths.topology().numaOf(from);
    const bool is_known = numa != kNoNode;
    const CpuDetails cpu = is_known ? nodeAt(paths.topology(), numa).cpu : CpuDetails{};
    table.back().push_back(is_known ? std::to_string(cpu.numa) : "-");
    table.back().push_back(cpu.cpus.empty() ? "-" : listOfCpus(cpu.cpus));
  }
  return table;
}

Table speedTable(const TopologyPaths& paths, const std::vector<int>& endpoints) {
  Table table{{""}};
  for (const int to : endpoints) table.front().push_back(columnOf(paths, to));
  for (const int from : endpoints) {
    table.push_back({columnOf(paths, from)});
    for (const int to : endpoints) {
      const Path& path = paths.between(from, to);
      table.back().push_back(from == to ? "X" : shortGBytes(path.gbytes_per_s));
    }
  }
  return table;
}

std::string legend(const TopologyPaths& paths, const std::vector<int>& endpoints) {
  std::set<PathClass> used;
  for (const int from : endpoints) {
    for (const int to : endpoints) {
      if (from != to) used.insert(paths.between(from, to).path_class);
    }
  }
  std::string text;
  for (const PathClass path_class : used) {
    const std::string label = path_class == PathClass::nvl ? "NV#" : std::string(name(path_class));
    text += fmt::format("  {:<4} {}\n", label, meaningOf(path_class));
  }
  for (const int node : endpoints) {
    const TopologyKind kind = nodeAt(paths.topology(), node).kind;
    if (kind != TopologyKind::net && kind != TopologyKind::nic) continue;
    const std::string label =
        kind == TopologyKind::net ? shortLabel(paths.topology(), node) : paths.topology().label(node);
    text += fmt::format("  {:<4} {}\n", columnOf(paths, node), label);
  }
  return text;
}

}  // namespace

std::vector<int> endpointsOf(const Topology& topology) {
  std::vector<int> endpoints = gpusInOrder(topology);
  if (endpoints.empty()) endpoints = topology.all(TopologyKind::numa_node);
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const TopologyKind kind = topology.nodes[i].kind;
    const bool has_ports = std::ranges::any_of(topology.nodes, [&](const TopologyNode& node) {
      return node.kind == TopologyKind::net && node.parent == static_cast<int>(i);
    });
    if (kind == TopologyKind::net || (kind == TopologyKind::nic && !has_ports))
      endpoints.push_back(static_cast<int>(i));
  }
  return endpoints;
}

std::string connectionWords(const TopologyPaths& paths, int from, int to) {
  if (from == to) return "X";
  const PathClass path_class = paths.between(from, to).path_class;
  if (path_class != PathClass::nvl) return std::string(name(path_class));
  return fmt::format("NV{}", nvlinkCount(paths, from, to));
}

std::string matrixText(const Machine& machine) {
  std::string text;
  for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape) {
    const TopologyPaths& paths = machine.paths[shape];
    const std::vector<int> endpoints = endpointsOf(paths.topology());
    if (shape > 0) text += '\n';
    text += namesOf(machine.hostsOf(shape)) + ": how they reach each other\n";
    text += aligned(classTable(paths, endpoints));
    text += "\nBandwidth of the narrowest link on the way, GB/s, one direction\n";
    text += aligned(speedTable(paths, endpoints));
    text += '\n' + legend(paths, endpoints);
  }
  return text;
}

}  // namespace tutti::topo
