#include "tools/topo/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "runtime/topology/graph_xml.h"
#include "runtime/topology/plain_text.h"
#include "runtime/topology/xml_file.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr int kMostRanks = 1024;  // of a communicator

/// NUMA nodes with CPUs; those of memory alone hold no rank.
std::vector<int> nodesWithCpus(const Topology& topology) {
  const std::vector<int> all = topology.all(TopologyKind::numa_node);
  std::vector<int> nodes;
  std::ranges::copy_if(all, std::back_inserter(nodes),
                       [&](int node) { return !nodeAt(topology, node).cpu.cpus.empty(); });
  return nodes.empty() ? all : nodes;
}

/// Ranks in host memory: dealt out to the NUMA nodes in blocks, and there to the caches.
void seatOnNodes(Cluster::HostShape& shape, int ranks_per_host) {
  const std::vector<int> nodes = nodesWithCpus(*shape.topology);
  if (nodes.empty()) return;
  const std::size_t ranks =
      ranks_per_host > 0 ? static_cast<std::size_t>(ranks_per_host) : std::max<std::size_t>(nodes.size(), 2);
  std::size_t caches_before = 0;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const std::size_t first = (at * ranks + nodes.size() - 1) / nodes.size();
    const std::size_t end = ((at + 1) * ranks + nodes.size() - 1) / nodes.size();
    const std::size_t caches = std::max<std::size_t>(1, nodeAt(*shape.topology, nodes[at]).cpu.caches.size());
    for (std::size_t rank = first; rank < end; ++rank) {
      shape.seats.push_back(nodes[at]);
      shape.caches.push_back(static_cast<int>(caches_before + (rank - first) * caches / (end - first)));
    }
    caches_before += caches;
  }
}

Cluster::HostShape makeShape(Topology&& topology, int ranks_per_host, const std::string& host) {
  Cluster::HostShape shape;
  shape.topology = std::make_shared<const Topology>(std::move(topology));
  shape.seats = gpusInOrder(*shape.topology);
  const auto wanted = static_cast<std::size_t>(ranks_per_host);
  if (shape.seats.empty()) {
    seatOnNodes(shape, ranks_per_host);
  } else if (wanted > shape.seats.size()) {
    throw std::invalid_argument(fmt::format("--ranks {}: {} has {} only; there is one rank per GPU",
                                            ranks_per_host, host, countWords(shape.seats.size(), "GPU")));
  } else if (wanted > 0) {
    shape.seats.resize(wanted);
  }
  return shape;
}

std::size_t shapeOf(Cluster& cluster, NamedHost&& host, int ranks_per_host) {
  const Topology wanted = withoutIdentity(host.topology);
  const auto known = std::ranges::find_if(
      cluster.shapes, [&](const auto& shape) { return withoutIdentity(*shape.topology) == wanted; });
  if (known != cluster.shapes.end()) return static_cast<std::size_t>(known - cluster.shapes.begin());
  cluster.shapes.push_back(makeShape(std::move(host.topology), ranks_per_host, host.name));
  return cluster.shapes.size() - 1;
}

/// The file's rings and trees in place of those found; what it lacks stays.
void takeGraph(Machine& machine, const MachineOptions& options) {
  if (machine.cluster.shapes.size() > 1)
    throw std::invalid_argument("--graph: one file is for hosts of one shape; these have several");
  std::vector<ChannelGraph> rings = machine.search.rings;
  std::vector<ChannelGraph> trees = machine.search.trees;
  bool has_rings = false;
  for (ChannelGraph& graph : readGraphXml(textOfFile(options.graph), options.graph, machine.topologyOf(0),
                                          machine.cluster.shapes.front().seats,
                                          machine.cluster.hosts.size() > 1, &machine.remarks)) {
    const bool is_ring = graph.pattern == ChannelPattern::ring;
    has_rings = has_rings || is_ring;
    (is_ring ? rings : trees).front() = std::move(graph);
  }
  if (!has_rings)
    throw std::invalid_argument(
        fmt::format("--graph: {} has no rings (pattern 4)", plainText(options.graph)));
  machine.search = joinHosts(machine.cluster, options.rules, std::move(rings), std::move(trees));
}

}  // namespace

std::vector<const Cluster::Host*> Machine::hostsOf(std::size_t shape) const {
  std::vector<const Cluster::Host*> found;
  for (const Cluster::Host& host : cluster.hosts) {
    if (host.shape == shape) found.push_back(&host);
  }
  return found;
}

std::size_t Machine::rankCount() const {
  std::size_t count = 0;
  for (const Cluster::Host& host : cluster.hosts) count += host.ranks.size();
  return count;
}

Machine makeMachine(std::vector<NamedHost> hosts, const MachineOptions& options) {
  Machine machine;
  int rank = 0;
  for (NamedHost& host : hosts) {
    Cluster::Host placed{.name = host.name, .shape = 0, .ranks = {}};
    placed.shape = shapeOf(machine.cluster, std::move(host), options.ranks_per_host);
    const std::size_t seats = machine.cluster.shapes[placed.shape].seats.size();
    for (std::size_t seat = 0; seat < seats; ++seat) placed.ranks.push_back(rank++);
    machine.cluster.hosts.push_back(std::move(placed));
  }
  if (rank > kMostRanks)
    throw std::invalid_argument(
        fmt::format("{} on {}: a communicator has {} at most; take fewer --hosts or --ranks",
                    countWords(machine.rankCount(), "rank"), countWords(machine.cluster.hosts.size(), "host"),
                    kMostRanks));
  for (const Cluster::HostShape& shape : machine.cluster.shapes) machine.paths.emplace_back(*shape.topology);
  machine.search = searchCluster(machine.cluster, options.rules);
  if (!options.graph.empty()) takeGraph(machine, options);
  machine.bandwidths = predictBandwidths(machine.cluster, machine.search, options.costs);
  return machine;
}

std::string namesOf(const std::vector<const Cluster::Host*>& hosts) {
  if (hosts.empty()) return "";
  if (hosts.size() == 1) return hosts.front()->name;
  if (hosts.size() == 2) return fmt::format("{} and {}", hosts.front()->name, hosts.back()->name);
  return fmt::format("{} to {} ({} hosts)", hosts.front()->name, hosts.back()->name, hosts.size());
}

}  // namespace tutti::topo
