#include "tools/topo/matrix_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

/// How many NVLinks lead from one node to another.
using NvLinkCounts = std::map<std::pair<int, int>, int>;

NvLinkCounts countNvLinks(const Topology& topology) {
  NvLinkCounts counts;
  for (const NvLinks& links : topology.nvlinks) counts[{links.from, links.to}] += links.count;
  return counts;
}

/// Those that the way begins with.
int nvlinkCount(const TopologyPaths& paths, const NvLinkCounts& counts, int from, int to) {
  const Path& path = paths.between(from, to);
  const int next = path.edges.empty() ? to : paths.edges()[static_cast<std::size_t>(path.edges.front())].to;
  const auto found = counts.find({from, next});
  return found == counts.end() ? 0 : found->second;
}

/// "GPU0", "NIC3", "NUMA1", by endpoint: columns are narrow.
std::vector<std::string> columnsOf(const Topology& topology, const std::vector<int>& endpoints) {
  std::vector<std::string> columns;
  int nics = 0;
  for (const int node : endpoints) {
    const TopologyKind kind = nodeAt(topology, node).kind;
    if (kind == TopologyKind::net || kind == TopologyKind::nic) {
      columns.push_back(fmt::format("NIC{}", nics++));
    } else if (kind == TopologyKind::numa_node) {
      columns.push_back(fmt::format("NUMA{}", nodeAt(topology, node).cpu.numa));
    } else {
      columns.push_back(shortLabel(topology, node));
      std::erase(columns.back(), ' ');
    }
  }
  return columns;
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

std::string connectionWords(const TopologyPaths& paths, const NvLinkCounts& counts, int from, int to) {
  if (from == to) return "X";
  const PathClass path_class = paths.between(from, to).path_class;
  if (path_class != PathClass::nvl) return std::string(name(path_class));
  return fmt::format("NV{}", nvlinkCount(paths, counts, from, to));
}

/// With the names of columns in its first row.
Table headed(const std::vector<std::string>& columns) {
  Table table{{""}};
  table.front().insert(table.front().end(), columns.begin(), columns.end());
  return table;
}

Table classTable(const TopologyPaths& paths, const std::vector<int>& endpoints,
                 const std::vector<std::string>& columns) {
  const NvLinkCounts counts = countNvLinks(paths.topology());
  Table table = headed(columns);
  table.front().insert(table.front().end(), {"NUMA", "CPUs"});
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    table.push_back({columns[i]});
    for (const int to : endpoints) table.back().push_back(connectionWords(paths, counts, endpoints[i], to));
    const int numa = paths.topology().numaOf(endpoints[i]);
    const bool is_known = numa != kNoNode;
    const CpuDetails cpu = is_known ? nodeAt(paths.topology(), numa).cpu : CpuDetails{};
    table.back().push_back(is_known ? std::to_string(cpu.numa) : "-");
    table.back().push_back(cpu.cpus.empty() ? "-" : listOfCpus(cpu.cpus));
  }
  return table;
}

Table speedTable(const TopologyPaths& paths, const std::vector<int>& endpoints,
                 const std::vector<std::string>& columns) {
  Table table = headed(columns);
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    table.push_back({columns[i]});
    for (const int to : endpoints) {
      const Path& path = paths.between(endpoints[i], to);
      table.back().push_back(endpoints[i] == to ? "X" : shortGBytes(path.gbytes_per_s));
    }
  }
  return table;
}

std::string legend(const TopologyPaths& paths, const std::vector<int>& endpoints,
                   const std::vector<std::string>& columns) {
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
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const int node = endpoints[i];
    const TopologyKind kind = nodeAt(paths.topology(), node).kind;
    if (kind != TopologyKind::net && kind != TopologyKind::nic) continue;
    const std::string label =
        kind == TopologyKind::net ? shortLabel(paths.topology(), node) : paths.topology().label(node);
    text += fmt::format("  {:<4} {}\n", columns[i], label);
  }
  return text;
}

}  // namespace

std::vector<int> endpointsOf(const Topology& topology) {
  std::vector<int> endpoints = gpusInOrder(topology);
  if (endpoints.empty()) endpoints = topology.all(TopologyKind::numa_node);
  std::vector<bool> has_ports(topology.nodes.size());
  for (const TopologyNode& node : topology.nodes) {
    if (node.kind == TopologyKind::net && node.parent != kNoNode)
      has_ports[static_cast<std::size_t>(node.parent)] = true;
  }
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const TopologyKind kind = topology.nodes[i].kind;
    if (kind == TopologyKind::net || (kind == TopologyKind::nic && !has_ports[i]))
      endpoints.push_back(static_cast<int>(i));
  }
  return endpoints;
}

std::string matrixText(const Machine& machine) {
  std::string text;
  for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape) {
    const TopologyPaths& paths = machine.paths[shape];
    const std::vector<int> endpoints = endpointsOf(paths.topology());
    const std::vector<std::string> columns = columnsOf(paths.topology(), endpoints);
    if (shape > 0) text += '\n';
    text += namesOf(machine.hostsOf(shape)) + ": how they reach each other\n";
    text += aligned(classTable(paths, endpoints, columns));
    text += "\nBandwidth of the narrowest link on the way, GB/s, one direction\n";
    text += aligned(speedTable(paths, endpoints, columns));
    text += '\n' + legend(paths, endpoints, columns);
  }
  return text;
}

}  // namespace tutti::topo
