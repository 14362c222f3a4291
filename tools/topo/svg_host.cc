#include "tools/topo/svg_host.h"

#include <fmt/format.h>

#include <vector>

#include "runtime/topology/notation.h"
#include "tools/topo/details.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr double kFont = 12;
constexpr double kSmallFont = 10.5;
constexpr double kInside = 8;  // what text leaves free of a box's width

/// The first line is the name.
std::vector<std::string> linesOf(const TopologyPaths& paths, int node) {
  const Topology& topology = paths.topology();
  const TopologyNode& it = nodeAt(topology, node);
  std::vector<std::string> lines{shortLabel(topology, node)};
  switch (it.kind) {
    case TopologyKind::numa_node: {
      if (it.cpu.package >= 0) lines.front() += fmt::format(", socket {}", it.cpu.package);
      std::string words = it.cpu.cpus.empty() ? "" : "CPUs " + listOfCpus(it.cpu.cpus);
      if (!it.cpu.vendor.empty()) words += (words.empty() ? "" : ", ") + it.cpu.vendor;
      lines.push_back(words);
      break;
    }
    case TopologyKind::gpu:
      lines.push_back(it.bus_id);
      lines.push_back(capabilityWords(it.gpu));
      lines.push_back(it.gpu.model);
      break;
    case TopologyKind::nic:
      lines.push_back(it.bus_id);
      break;
    case TopologyKind::net:
      lines.push_back(portSpeedWords(it.net));
      break;
    case TopologyKind::pci_bridge:
    case TopologyKind::nvswitch:
      break;
  }
  std::erase(lines, "");
  return lines;
}

void drawNode(Canvas& canvas, const TopologyPaths& paths, const PlacedNode& placed, const std::string& id) {
  constexpr double kLine = 14;
  const Topology& topology = paths.topology();
  const TopologyKind kind = nodeAt(topology, placed.node).kind;
  const Box& box = placed.box;
  Canvas group = canvas.group("node", id);
  std::string title = topology.label(placed.node);
  if (const std::string details = detailsOf(paths, placed.node); !details.empty()) title += ": " + details;
  group.title(title);
  group.rectangle(box, wordOf(kind), 3);
  const std::vector<std::string> lines = linesOf(paths, placed.node);
  // Centred as a block: letters stand about a third of their size above the middle of their line.
  double y = box.y + box.height / 2 - kLine * (static_cast<double>(lines.size()) - 1) / 2 + kFont / 3;
  for (std::size_t i = 0; i < lines.size(); ++i, y += kLine) {
    group.text(box.middle(), y, fitted(lines[i], box.width - kInside, i == 0 ? kFont : kSmallFont),
               i == 0 ? "strong" : "small");
  }
}

void drawWire(Canvas& canvas, const Wire& wire) {
  Canvas group = canvas.group("");
  group.title(wire.title);
  group.path(fmt::format("M{} {}V{}", coordinate(wire.x), coordinate(wire.top), coordinate(wire.bottom)),
             fmt::format("wire {}", classOf(wire.medium)), strokeWidth(wire.gbytes_per_s));
}

/// Beside the lower end, where no other wire comes near.
void drawNumber(Canvas& canvas, const Wire& wire) {
  if (!wire.has_label) return;
  const double x = wire.x + strokeWidth(wire.gbytes_per_s) / 2 + 3;
  canvas.text(x, wire.bottom - 13, shortGBytes(wire.gbytes_per_s), "number", "start");
}

void drawBow(Canvas& canvas, const Bow& bow) {
  Canvas group = canvas.group("");
  group.title(bow.title);
  const double deep = bow.top + bow.depth * 4 / 3;  // a cubic curve reaches three quarters of its handles
  group.path(fmt::format("M{0} {4}V{1}C{0} {3} {2} {3} {2} {1}V{4}", coordinate(bow.left),
                         coordinate(bow.top), coordinate(bow.right), coordinate(deep), coordinate(bow.start)),
             fmt::format("wire {}", classOf(bow.medium)), strokeWidth(bow.gbytes_per_s));
}

void drawBetweenSockets(Canvas& canvas, const HostLayout& layout) {
  const Box& bar = layout.between_sockets;
  if (bar.width <= 0) return;
  Canvas group = canvas.group("");
  const std::string words = fmt::format("between NUMA nodes: {}", gbytesWords(layout.between_sockets_gbytes));
  group.title(words);
  group.rectangle(bar, "bar", 3);
  group.text(bar.middle(), bar.y + bar.height / 2 + 4, words, "on-bar");
}

}  // namespace

void drawHost(Canvas canvas, const TopologyPaths& paths, const HostLayout& layout,
              const std::string& prefix) {
  for (const PlacedFrame& frame : layout.frames) {
    canvas.rectangle(frame.box, "frame", 6);
    if (!frame.label.empty()) canvas.text(frame.box.x + 8, frame.box.y + 14, frame.label, "small", "start");
  }
  drawBetweenSockets(canvas, layout);
  for (const Wire& wire : layout.wires) drawWire(canvas, wire);
  for (const Bow& bow : layout.bows) drawBow(canvas, bow);
  for (const PlacedNode& placed : layout.nodes)
    drawNode(canvas, paths, placed, fmt::format("{}{}", prefix, placed.node));
  for (const Wire& wire : layout.wires) drawNumber(canvas, wire);
  for (const Bow& bow : layout.bows)
    canvas.text((bow.left + bow.right) / 2, bow.top + bow.depth + 4, bow.label, "number");
}

}  // namespace tutti::topo
