#include "tools/topo/dot_graph.h"

#include <fmt/format.h>

#include <vector>

#include "tools/topo/svg_canvas.h"
#include "tools/topo/tree.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

/// A string of the DOT language.
std::string quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}\"", escaped);
}

const char* styleOf(TopologyKind kind) {
  switch (kind) {
    case TopologyKind::numa_node:
      return "fillcolor=\"#dde3ec\"";
    case TopologyKind::pci_bridge:
      return "fillcolor=\"#d3e3f6\"";
    case TopologyKind::gpu:
      return "fillcolor=\"#d5eed3\"";
    case TopologyKind::nvswitch:
      return "fillcolor=\"#c4ebdb\"";
    case TopologyKind::nic:
    case TopologyKind::net:
      return "fillcolor=\"#fce2c6\"";
  }
  return "";
}

const char* colourOf(Edge::Kind kind) {
  switch (kind) {
    case Edge::Kind::pci:
      return "#3f76b5";
    case Edge::Kind::nvlink:
      return "#3c9440";
    case Edge::Kind::c2c:
      return "#8a56b8";
    case Edge::Kind::socket:
      return "#838c9b";
    case Edge::Kind::net:
      return "#cf7d33";
  }
  return "";
}

class DotWriter {
 public:
  DotWriter(const TopologyPaths& paths, std::size_t shape)
      : paths_(paths), topology_(paths.topology()), shape_(shape), is_drawn_(topology_.nodes.size()) {}

  std::string text() {
    for (const int root : rootsOf(topology_)) {
      addNode(root);
      addAll(hangingAt(paths_, root, Bridges::all));
    }
    for (const int node : topology_.all(TopologyKind::nvswitch)) addNode(node);
    for (const Edge& edge : paths_.edges()) addEdge(edge);
    return text_;
  }

 private:
  std::string id(int node) const { return fmt::format("s{}n{}", shape_, node); }

  void addAll(const std::vector<Hanging>& all) {
    for (const Hanging& hanging : all) {
      addNode(hanging.node);
      addAll(hanging.children);
    }
  }

  void addNode(int node) {
    const TopologyNode& it = nodeAt(topology_, node);
    std::string label = shortLabel(topology_, node);
    if (it.kind == TopologyKind::net) label += fmt::format(" {}", portSpeedWords(it.net));
    if (it.kind != TopologyKind::pci_bridge && !it.bus_id.empty()) label += fmt::format(" {}", it.bus_id);
    text_ += fmt::format("    {} [label={}, {}];\n", id(node), quoted(label), styleOf(it.kind));
    is_drawn_[static_cast<std::size_t>(node)] = true;
  }

  /// Both directions are one line; the one from the smaller index stands for both.
  void addEdge(const Edge& edge) {
    const bool is_between_drawn =
        is_drawn_[static_cast<std::size_t>(edge.from)] && is_drawn_[static_cast<std::size_t>(edge.to)];
    if (edge.from > edge.to || !is_between_drawn) return;
    const bool is_tree = nodeAt(topology_, edge.to).parent == edge.from;
    text_ += fmt::format("    {} -- {} [label={}, color=\"{}\", penwidth={}{}];\n", id(edge.from),
                         id(edge.to), quoted(shortGBytes(edge.gbytes_per_s)), colourOf(edge.kind),
                         coordinate(strokeWidth(edge.gbytes_per_s)), is_tree ? "" : ", constraint=false");
  }

  const TopologyPaths& paths_;
  const Topology& topology_;
  std::size_t shape_;
  std::vector<bool> is_drawn_;
  std::string text_;
};

}  // namespace

std::string dotGraph(const Machine& machine) {
  std::string text =
      "graph topology {\n"
      "  // Numbers at links: GB/s in one direction.\n"
      "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=11];\n"
      "  edge [fontname=\"Helvetica\", fontsize=9];\n";
  for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape) {
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", shape,
                        quoted(namesOf(machine.hostsOf(shape))));
    text += DotWriter(machine.paths[shape], shape).text() + "  }\n";
  }
  return text + "}\n";
}

}  // namespace tutti::topo
