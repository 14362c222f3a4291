#include "tools/topo/tree.h"

#include <algorithm>
#include <utility>

#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

/// By node: whether a GPU, NIC or port is it or hangs at it. Children come later than parents.
std::vector<bool> usefulNodes(const Topology& topology) {
  std::vector<bool> is_useful(topology.nodes.size());
  for (std::size_t i = topology.nodes.size(); i-- > 0;) {
    const TopologyNode& node = topology.nodes[i];
    const bool counts =
        node.kind == TopologyKind::gpu || node.kind == TopologyKind::nic || node.kind == TopologyKind::net;
    is_useful[i] = is_useful[i] || counts;
    if (is_useful[i] && node.parent != kNoNode) is_useful[static_cast<std::size_t>(node.parent)] = true;
  }
  return is_useful;
}

class Gatherer {
 public:
  Gatherer(const TopologyPaths& paths, Bridges bridges)
      : paths_(paths),
        bridges_(bridges),
        is_useful_(usefulNodes(paths.topology())),
        children_(is_useful_.size()) {
    for (std::size_t i = 0; i < is_useful_.size(); ++i) {
      const int parent = paths.topology().nodes[i].parent;
      if (is_useful_[i] && parent != kNoNode)
        children_[static_cast<std::size_t>(parent)].push_back(static_cast<int>(i));
    }
  }

  std::vector<Hanging> below(int node) const {
    std::vector<Hanging> result;
    for (const int child : children_[static_cast<std::size_t>(node)]) result.push_back(at(child));
    return result;
  }

 private:
  Hanging at(int node) const {
    Hanging hanging{.node = node, .gbytes_per_s = linkGBytes(paths_, node), .passed = {}, .children = {}};
    while (bridges_ == Bridges::folded && isFoldable(hanging.node)) {
      hanging.passed.push_back(hanging.node);
      hanging.node = children_[static_cast<std::size_t>(hanging.node)].front();
      const double here = linkGBytes(paths_, hanging.node);
      hanging.gbytes_per_s = std::min(hanging.gbytes_per_s, here);
    }
    hanging.children = below(hanging.node);
    return hanging;
  }

  bool isFoldable(int node) const {
    return nodeAt(paths_.topology(), node).kind == TopologyKind::pci_bridge &&
           children_[static_cast<std::size_t>(node)].size() == 1;
  }

  const TopologyPaths& paths_;
  Bridges bridges_;
  std::vector<bool> is_useful_;
  std::vector<std::vector<int>> children_;
};

}  // namespace

std::vector<Hanging> hangingAt(const TopologyPaths& paths, int node, Bridges bridges) {
  return Gatherer(paths, bridges).below(node);
}

std::vector<int> rootsOf(const Topology& topology) {
  std::vector<int> roots;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const TopologyNode& node = topology.nodes[i];
    if (node.parent == kNoNode && node.kind != TopologyKind::nvswitch) roots.push_back(static_cast<int>(i));
  }
  return roots;
}

}  // namespace tutti::topo
