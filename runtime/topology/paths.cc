#include "runtime/topology/paths.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "runtime/topology/bandwidths.h"

namespace tutti {
namespace {

constexpr double kIntelPciLoad = 1.2;  // NCCL's graph/topo.h: INTEL_P2P_OVERHEAD

std::size_t at(int index) { return static_cast<std::size_t>(index); }

const TopologyNode& nodeOf(const Topology& topology, int node) { return topology.nodes[at(node)]; }

TopologyKind kindOf(const Topology& topology, int node) { return nodeOf(topology, node).kind; }

/// To the parent. A card without a place is no limit: its port is one.
double parentGBytes(const TopologyNode& node) {
  if (node.kind == TopologyKind::net) return netGBytes(node.net);
  return node.bus_id.empty() ? kLocalGBytes : pciGBytes(node.link);
}

/// Of one link. Two GPUs talk as the older one can.
double linkGBytes(const Topology& topology, const NvLinks& links) {
  if (links.gbytes_per_s > 0) return links.gbytes_per_s;
  double least = kLocalGBytes;
  for (const int end : {links.from, links.to}) {
    const TopologyNode& node = nodeOf(topology, end);
    if (node.kind == TopologyKind::gpu) least = std::min(least, nvlinkGBytes(node.gpu.compute_capability));
  }
  return least;
}

/// In both directions; NVLinks, which are listed by direction, are not among them.
std::vector<Edge> undirectedEdges(const Topology& topology) {
  std::vector<Edge> edges;
  const auto connect = [&edges](int a, int b, Edge::Kind kind, double gbytes_per_s) {
    edges.push_back({a, b, kind, gbytes_per_s});
    edges.push_back({b, a, kind, gbytes_per_s});
  };
  for (int i = 0; i < static_cast<int>(topology.nodes.size()); ++i) {
    const TopologyNode& node = nodeOf(topology, i);
    if (node.parent == kNoNode || node.kind == TopologyKind::nvswitch) continue;
    const bool is_port = node.kind == TopologyKind::net;
    connect(i, node.parent, is_port ? Edge::Kind::net : Edge::Kind::pci, parentGBytes(node));
  }
  for (const PeerSwitches& pair : topology.peer_switches) {
    const double gbytes =
        std::min(pciGBytes(nodeOf(topology, pair.a).link), pciGBytes(nodeOf(topology, pair.b).link));
    connect(pair.a, pair.b, Edge::Kind::pci, gbytes);
  }
  const std::vector<int> numa = topology.all(TopologyKind::numa_node);
  for (std::size_t i = 0; i < numa.size(); ++i) {
    for (std::size_t j = i + 1; j < numa.size(); ++j) {
      connect(
          numa[i], numa[j], Edge::Kind::socket,
          std::min(socketGBytes(nodeOf(topology, numa[i]).cpu), socketGBytes(nodeOf(topology, numa[j]).cpu)));
    }
  }
  return edges;
}

/// Ordered by the names of their ends; NVLinks between the same ends are one.
std::vector<Edge> edgesOf(const Topology& topology) {
  std::vector<Edge> edges = undirectedEdges(topology);
  std::map<std::pair<int, int>, std::map<Edge::Kind, double>> links;
  for (const NvLinks& each : topology.nvlinks) {
    links[{each.from, each.to}][each.is_c2c ? Edge::Kind::c2c : Edge::Kind::nvlink] +=
        each.count * linkGBytes(topology, each);
  }
  for (const auto& [ends, kinds] : links) {
    for (const auto& [kind, gbytes] : kinds) edges.push_back({ends.first, ends.second, kind, gbytes});
  }
  const std::vector<int> order = topology.orderByName();
  std::ranges::stable_sort(
      edges, {}, [&order](const Edge& edge) { return std::pair(order[at(edge.from)], order[at(edge.to)]); });
  return edges;
}

/// The class of a path that takes no worse edge.
PathClass classOf(const Topology& topology, const Edge& edge) {
  switch (edge.kind) {
    case Edge::Kind::net:
      return PathClass::loc;
    case Edge::Kind::nvlink:
      return PathClass::nvl;
    case Edge::Kind::c2c:
      return PathClass::c2c;
    case Edge::Kind::socket:
      return PathClass::sys;
    case Edge::Kind::pci:
      break;
  }
  const TopologyKind from = kindOf(topology, edge.from);
  const TopologyKind to = kindOf(topology, edge.to);
  if (from == TopologyKind::numa_node || to == TopologyKind::numa_node) return PathClass::phb;
  return from == TopologyKind::pci_bridge && to == TopologyKind::pci_bridge ? PathClass::pxb : PathClass::pix;
}

/// The best paths from one node. Class by class, best first: what can be reached with the edges that are no
/// worse, and could not before, has this class. How wide the widest way to it is decides which edges its
/// shortest may take.
class Search {
 public:
  Search(const Topology& topology, const std::vector<Edge>& edges,
         const std::vector<std::vector<int>>& leaving, int source)
      : topology_(topology),
        edges_(edges),
        leaving_(leaving),
        source_(source),
        found_(topology.nodes.size()) {}

  /// By target.
  std::vector<Path> run();

 private:
  bool passesOn(int node) const;
  bool mayTake(int edge, PathClass most) const;
  std::vector<double> widths(PathClass most) const;
  void addReachable(PathClass path_class);
  void addShortest(PathClass path_class, double least, const std::vector<double>& widths);
  void addThroughPeerGpus();
  void addThroughCoherentCpus();
  void add(int target, PathClass path_class, std::vector<int> edges);
  bool isFound(int target) const { return found_[at(target)].path_class != PathClass::dis; }
  bool isNicOrPort(int node) const;
  std::vector<int> alongTree(int node, int above, bool is_up) const;
  int edgeBetween(int from, int to) const;
  double width(const Path& path) const;
  double pciLoad(int target, const std::vector<int>& path) const;

  const Topology& topology_;
  const std::vector<Edge>& edges_;
  const std::vector<std::vector<int>>& leaving_;
  const int source_;
  std::vector<Path> found_;
};

std::vector<Path> Search::run() {
  found_[at(source_)] = {PathClass::loc, kLocalGBytes, {}, 1};
  for (const PathClass path_class :
       {PathClass::loc, PathClass::nvl, PathClass::nvb, PathClass::c2c, PathClass::pix, PathClass::pxb,
        PathClass::p2c, PathClass::phb, PathClass::sys}) {
    if (path_class == PathClass::nvb) {
      addThroughPeerGpus();
    } else if (path_class == PathClass::p2c) {
      addThroughCoherentCpus();
    } else {
      addReachable(path_class);
    }
  }
  return std::move(found_);
}

bool Search::isNicOrPort(int node) const {
  const TopologyKind kind = kindOf(topology_, node);
  return kind == TopologyKind::nic || kind == TopologyKind::net;
}

bool Search::passesOn(int node) const {
  return node == source_ || kindOf(topology_, node) != TopologyKind::gpu;
}

bool Search::mayTake(int edge, PathClass most) const { return classOf(topology_, edges_[at(edge)]) <= most; }

/// By node, of the widest path whose edges are no worse than `most`; 0: there is none.
std::vector<double> Search::widths(PathClass most) const {
  std::vector<double> widest(found_.size(), 0);
  std::priority_queue<std::pair<double, int>> waiting;
  widest[at(source_)] = kLocalGBytes;
  waiting.emplace(kLocalGBytes, source_);
  while (!waiting.empty()) {
    const auto [so_wide, node] = waiting.top();
    waiting.pop();
    if (so_wide < widest[at(node)] || !passesOn(node)) continue;
    for (const int edge : leaving_[at(node)]) {
      if (!mayTake(edge, most)) continue;
      const int to = edges_[at(edge)].to;
      const double width = std::min(so_wide, edges_[at(edge)].gbytes_per_s);
      if (width <= widest[at(to)]) continue;
      widest[at(to)] = width;
      waiting.emplace(width, to);
    }
  }
  return widest;
}

void Search::addReachable(PathClass path_class) {
  const std::vector<double> widest = widths(path_class);
  std::set<double> different;
  for (std::size_t i = 0; i < widest.size(); ++i) {
    if (widest[i] > 0 && !isFound(static_cast<int>(i))) different.insert(widest[i]);
  }
  for (const double width : different) addShortest(path_class, width, widest);
}

/// To the nodes that are `width` away, over edges that are as wide. Nodes are visited in the order of their
/// paths' nodes: so the first path to reach one is the one to take.
void Search::addShortest(PathClass path_class, double width, const std::vector<double>& widest) {
  std::vector<int> by(found_.size(), -1);  // the edge that a node was reached by
  std::queue<int> waiting({source_});
  while (!waiting.empty()) {
    const int node = waiting.front();
    waiting.pop();
    if (widest[at(node)] == width && !isFound(node)) {
      std::vector<int> path;
      for (int i = node; i != source_; i = edges_[at(by[at(i)])].from) path.push_back(by[at(i)]);
      std::ranges::reverse(path);
      add(node, path_class, std::move(path));
    }
    if (!passesOn(node)) continue;
    for (const int edge : leaving_[at(node)]) {
      const int to = edges_[at(edge)].to;
      if (to == source_ || by[at(to)] >= 0) continue;
      if (edges_[at(edge)].gbytes_per_s < width || !mayTake(edge, path_class)) continue;
      by[at(to)] = edge;
      waiting.push(to);
    }
  }
}

/// From GPU to GPU by way of the GPU with the widest NVLinks to both.
void Search::addThroughPeerGpus() {
  std::map<int, Path> best;
  for (const int first : leaving_[at(source_)]) {
    const int peer = edges_[at(first)].to;
    if (edges_[at(first)].kind != Edge::Kind::nvlink || kindOf(topology_, source_) != TopologyKind::gpu ||
        kindOf(topology_, peer) != TopologyKind::gpu) {
      continue;
    }
    for (const int second : leaving_[at(peer)]) {
      const int target = edges_[at(second)].to;
      if (edges_[at(second)].kind != Edge::Kind::nvlink || kindOf(topology_, target) != TopologyKind::gpu)
        continue;
      const double width = std::min(edges_[at(first)].gbytes_per_s, edges_[at(second)].gbytes_per_s);
      Path& path = best[target];
      if (width > path.gbytes_per_s) path = {PathClass::nvb, width, {first, second}, 1};
    }
  }
  for (const auto& [target, path] : best) {
    if (!isFound(target)) add(target, PathClass::nvb, path.edges);
  }
}

/// Between a GPU and the NICs of the CPU that a coherent link joins it to.
void Search::addThroughCoherentCpus() {
  for (const int first : leaving_[at(source_)]) {
    if (edges_[at(first)].kind != Edge::Kind::c2c) continue;
    for (int node = 0; node < static_cast<int>(found_.size()); ++node) {
      if (!isNicOrPort(node) || isFound(node) || topology_.numaOf(node) != edges_[at(first)].to) continue;
      std::vector<int> path = alongTree(node, edges_[at(first)].to, false);
      path.insert(path.begin(), first);
      add(node, PathClass::p2c, std::move(path));
    }
  }
  if (!isNicOrPort(source_)) return;
  const int cpu = topology_.numaOf(source_);
  if (cpu == kNoNode) return;
  for (const int last : leaving_[at(cpu)]) {
    const int gpu = edges_[at(last)].to;
    if (edges_[at(last)].kind != Edge::Kind::c2c || isFound(gpu)) continue;
    std::vector<int> path = alongTree(source_, cpu, true);
    path.push_back(last);
    add(gpu, PathClass::p2c, std::move(path));
  }
}

/// The edges from a node up to one above it, or the way down.
std::vector<int> Search::alongTree(int node, int above, bool is_up) const {
  std::vector<int> path;
  for (int i = node; i != above; i = nodeOf(topology_, i).parent) {
    const int parent = nodeOf(topology_, i).parent;
    path.push_back(is_up ? edgeBetween(i, parent) : edgeBetween(parent, i));
  }
  if (!is_up) std::ranges::reverse(path);
  return path;
}

int Search::edgeBetween(int from, int to) const {
  const std::vector<int>& edges = leaving_[at(from)];
  return *std::ranges::find(edges, to, [this](int edge) { return edges_[at(edge)].to; });
}

void Search::add(int target, PathClass path_class, std::vector<int> edges) {
  Path& path = found_[at(target)];
  path = {path_class, 0, std::move(edges), 1};
  path.pci_load = pciLoad(target, path.edges);
  path.gbytes_per_s = width(path);
}

double Search::width(const Path& path) const {
  double least = kLocalGBytes;
  for (const int index : path.edges) {
    const Edge& edge = edges_[at(index)];
    least = std::min(least, edge.gbytes_per_s / (edge.kind == Edge::Kind::pci ? path.pci_load : 1));
  }
  return least;
}

double Search::pciLoad(int target, const std::vector<int>& path) const {
  const auto is_device = [this](int node) {
    return kindOf(topology_, node) == TopologyKind::gpu || isNicOrPort(node);
  };
  if (!is_device(source_) || !is_device(target) || (isNicOrPort(source_) && isNicOrPort(target))) return 1;
  const auto is_intel = [this](int edge) {
    const TopologyNode& to = nodeOf(topology_, edges_[at(edge)].to);
    return to.kind == TopologyKind::numa_node && to.cpu.vendor == "GenuineIntel";
  };
  return std::ranges::any_of(path, is_intel) ? kIntelPciLoad : 1;
}

}  // namespace

TopologyPaths::TopologyPaths(const Topology& topology)
    : topology_(&topology),
      edges_(edgesOf(topology)),
      leaving_(topology.nodes.size()),
      paths_(topology.nodes.size()) {
  for (int i = 0; i < static_cast<int>(edges_.size()); ++i) leaving_[at(edges_[at(i)].from)].push_back(i);
}

const Path& TopologyPaths::between(int from, int to) const {
  std::vector<Path>& paths = paths_[at(from)];
  if (paths.empty()) paths = Search(*topology_, edges_, leaving_, from).run();
  return paths[at(to)];
}

}  // namespace tutti
