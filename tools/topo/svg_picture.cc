#include "tools/topo/svg_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "tools/topo/svg_canvas.h"
#include "tools/topo/svg_host.h"
#include "tools/topo/svg_rings.h"
#include "tools/topo/svg_style.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr double kMargin = 16;
constexpr double kTitleHeight = 40;
constexpr double kMostWidth = 1500;  // hosts that do not fit side by side stand below each other
constexpr double kLeastWidth = 640;  // the legend's
constexpr double kLegendHeight = 64;
constexpr std::size_t kMostHosts = 4;

struct Panel {
  std::size_t shape = 0;
  std::string title;
  HostLayout layout = {};
  double height = 0;  ///< with the rings
  double x = 0;
  double y = 0;
};

std::string subtitleOf(const Machine& machine, std::size_t shape) {
  const Topology& topology = machine.topologyOf(shape);
  std::string words;
  const auto add = [&](TopologyKind kind, const char* what) {
    const std::size_t count = topology.all(kind).size();
    if (count > 0) words += (words.empty() ? "" : ", ") + countWords(count, what);
  };
  add(TopologyKind::numa_node, "NUMA node");
  add(TopologyKind::gpu, "GPU");
  add(TopologyKind::nic, "NIC");
  return words;
}

std::vector<Panel> panelsOf(const Machine& machine) {
  std::vector<Panel> panels;
  if (machine.cluster.hosts.size() <= kMostHosts) {
    for (const Cluster::Host& host : machine.cluster.hosts)
      panels.push_back({.shape = host.shape, .title = host.name});
  } else {
    for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape)
      panels.push_back({.shape = shape, .title = namesOf(machine.hostsOf(shape))});
  }
  for (Panel& panel : panels) {
    panel.layout = layOut(machine.paths[panel.shape], kTitleHeight);
    panel.height = panel.layout.height + ringsHeight(machine.search.rings[panel.shape]);
  }
  return panels;
}

/// From left to right, then downwards. Returns the size of all.
Box arrange(std::vector<Panel>& panels) {
  double x = kMargin;
  double y = kMargin;
  double row = 0;
  Box all;
  for (Panel& panel : panels) {
    if (x > kMargin && x + panel.layout.width > kMostWidth) {
      x = kMargin;
      y += row + kMargin;
      row = 0;
    }
    panel.x = x;
    panel.y = y;
    x += panel.layout.width + kMargin;
    row = std::max(row, panel.height);
    all.width = std::max(all.width, x);
    all.height = std::max(all.height, y + row + kMargin);
  }
  return all;
}

void drawPanel(Canvas& canvas, const Machine& machine, const Panel& panel, const std::string& prefix) {
  Canvas group = canvas.shifted(panel.x, panel.y);
  group.rectangle({.x = 0, .y = 0, .width = panel.layout.width, .height = panel.height}, "host", 8);
  group.text(12, 25, panel.title, "title", "start");
  group.text(panel.layout.width - 12, 25, subtitleOf(machine, panel.shape), "small", "end");
  drawHost(group, machine.paths[panel.shape], panel.layout, prefix);
  drawRings(group, machine.paths[panel.shape], panel.layout, machine.cluster.shapes[panel.shape].seats,
            machine.search.rings[panel.shape], machine.cluster.hosts.size() == 1, panel.layout.height);
}

const char* wordsOf(Medium medium) {
  switch (medium) {
    case Medium::pci:
      return "PCI";
    case Medium::nvlink:
      return "NVLink";
    case Medium::c2c:
      return "NVLink-C2C";
    case Medium::socket:
      return "between NUMA nodes";
    case Medium::net:
      return "network";
  }
  return "";
}

/// Colours of what is there, then widths; in two lines where the picture is narrow.
void drawLegend(Canvas& canvas, const std::vector<Panel>& panels, double width, double top) {
  std::set<Medium> media;
  for (const Panel& panel : panels) {
    for (const Wire& wire : panel.layout.wires) media.insert(wire.medium);
    for (const Bow& bow : panel.layout.bows) media.insert(bow.medium);
  }
  Canvas group = canvas.group("legend");
  constexpr double kLine = 34;
  double x = kMargin;
  double y = top + 14;
  const auto sample = [&](const std::string& css_class, double stroke, const std::string& words) {
    const double wanted = kLine + 8 + static_cast<double>(words.size()) * 6.6 + 18;
    if (x > kMargin && x + wanted > width) {
      x = kMargin;
      y += 22;
    }
    group.path(fmt::format("M{} {}h{}", coordinate(x), coordinate(y), coordinate(kLine)), "wire " + css_class,
               stroke);
    group.text(x + kLine + 8, y + 4, words, "small", "start");
    x += wanted;
  };
  for (const Medium medium : media) sample(classOf(medium), 4, wordsOf(medium));
  for (const double speed : {3.0, 12.0, 25.0, 50.0, 200.0})
    sample("socket", strokeWidth(speed), gbytesWords(speed));
  group.text(kMargin, y + 26, "Numbers at links: GB/s in one direction.", "small", "start");
}

}  // namespace

std::string svgPicture(const Machine& machine) {
  std::vector<Panel> panels = panelsOf(machine);
  Box size = arrange(panels);
  size.width = std::max(size.width, kLeastWidth);
  const double height = size.height + kLegendHeight;

  pugi::xml_document document;
  pugi::xml_node svg = document.append_child("svg");
  svg.append_attribute("xmlns") = "http://www.w3.org/2000/svg";
  svg.append_attribute("viewBox") =
      fmt::format("0 0 {} {}", coordinate(size.width), coordinate(height)).c_str();
  svg.append_attribute("width") = coordinate(size.width).c_str();
  svg.append_attribute("height") = coordinate(height).c_str();
  svg.append_attribute("role") = "img";
  svg.append_child("style").text() = kStyle;
  Canvas canvas(svg);
  canvas.title(fmt::format("Topology of {}", countWords(machine.cluster.hosts.size(), "host")));
  canvas.rectangle({.x = 0, .y = 0, .width = size.width, .height = height}, "paper");
  for (std::size_t i = 0; i < panels.size(); ++i)
    drawPanel(canvas, machine, panels[i], fmt::format("h{}n", i));
  drawLegend(canvas, panels, size.width, size.height);

  std::ostringstream text;
  document.save(text, " ", pugi::format_default | pugi::format_no_declaration);
  return text.str();
}

}  // namespace tutti::topo
