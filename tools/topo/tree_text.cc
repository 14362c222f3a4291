#include "tools/topo/tree_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/topology/bandwidths.h"
#include "tools/topo/details.h"
#include "tools/topo/tree.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

struct Row {
  std::string what = {};  ///< with the branches before it
  std::size_t width = 0;  ///< of `what`, in characters
  std::string link = {};
  std::string speed = {};
  std::string details = {};
};

class TreeWriter {
 public:
  explicit TreeWriter(const TopologyPaths& paths) : paths_(paths) {}

  std::string text() {
    const std::vector<int> roots = rootsOf(topology());
    const std::vector<int> switches = topology().all(TopologyKind::nvswitch);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const bool is_last = i + 1 == roots.size() && switches.empty();
      addRoot(roots[i], is_last);
    }
    for (std::size_t i = 0; i < switches.size(); ++i) addSwitch(switches[i], i + 1 == switches.size());
    return joined();
  }

 private:
  const Topology& topology() const { return paths_.topology(); }

  void add(const std::string& branches, bool is_last, const std::string& label, Row row) {
    // Each level of branches is three characters wide.
    row.what = fmt::format("{}{}{}", branches, is_last ? "└─ " : "├─ ", label);
    row.width = 3 * (levels_ + 1) + label.size();
    rows_.push_back(std::move(row));
  }

  void addRoot(int node, bool is_last) {
    levels_ = 0;
    add("", is_last, shortLabel(topology(), node), {.details = detailsOf(paths_, node)});
    addAll(hangingAt(paths_, node, Bridges::all), is_last ? "   " : "│  ");
  }

  void addAll(const std::vector<Hanging>& all, const std::string& branches) {
    ++levels_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_last = i + 1 == all.size();
      addHanging(all[i], branches, is_last);
      addAll(all[i].children, branches + (is_last ? "   " : "│  "));
    }
    --levels_;
  }

  void addHanging(const Hanging& hanging, const std::string& branches, bool is_last) {
    const TopologyNode& it = nodeAt(topology(), hanging.node);
    const bool is_port = it.kind == TopologyKind::net;
    std::string label = shortLabel(topology(), hanging.node);
    if (it.kind != TopologyKind::pci_bridge && !it.bus_id.empty()) label += "  " + it.bus_id;
    const bool is_virtual = !is_port && it.bus_id.empty();
    std::string link = is_port ? portSpeedWords(it.net) : trainedWords(it.link);
    if (link.empty() && !is_virtual) link = "speed unknown";
    add(branches, is_last, label,
        {.link = link,
         .speed = is_virtual ? "" : gbytesWords(is_port ? netGBytes(it.net) : hanging.gbytes_per_s),
         .details = detailsOf(paths_, hanging.node)});
  }

  void addSwitch(int node, bool is_last) {
    levels_ = 0;
    const auto reach = std::ranges::count(topology().nvlinks, node, &NvLinks::to);
    const TopologyNode& it = nodeAt(topology(), node);
    add("", is_last, shortLabel(topology(), node) + (it.bus_id.empty() ? "" : "  " + it.bus_id),
        {.details = "reached by " + countWords(static_cast<std::size_t>(reach), "GPU")});
  }

  std::string joined() const {
    std::size_t what = 0;
    std::size_t link = 0;
    std::size_t speed = 0;
    for (const Row& row : rows_) {
      what = std::max(what, row.width);
      link = std::max(link, row.link.size());
      speed = std::max(speed, row.speed.size());
    }
    std::string text;
    for (const Row& row : rows_) {
      std::string line = fmt::format("{}{:{}}  {:<{}}  {:>{}}  {}", row.what, "", what - row.width, row.link,
                                     link, row.speed, speed, row.details);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
    return text;
  }

  const TopologyPaths& paths_;
  std::vector<Row> rows_;
  std::size_t levels_ = 0;
};

std::string headline(const Machine& machine, std::size_t shape) {
  const Topology& topology = machine.topologyOf(shape);
  const auto counted = [&](TopologyKind kind, const char* what) {
    return countWords(topology.all(kind).size(), what);
  };
  const std::vector<const Cluster::Host*> hosts = machine.hostsOf(shape);
  std::string line = fmt::format("{}: {}, {}", namesOf(hosts), counted(TopologyKind::numa_node, "NUMA node"),
                                 counted(TopologyKind::gpu, "GPU"));
  const std::size_t switches = topology.all(TopologyKind::nvswitch).size();
  if (switches > 0) line += ", " + countWords(switches, "NVSwitch");
  line += fmt::format(", {}, {}", counted(TopologyKind::nic, "NIC"), counted(TopologyKind::net, "port"));
  return hosts.size() > 1 ? line + " each\n" : line + "\n";
}

}  // namespace

std::string treeText(const Machine& machine) {
  std::string text;
  for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape) {
    if (shape > 0) text += '\n';
    text += headline(machine, shape) + TreeWriter(machine.paths[shape]).text();
    for (const std::string& unseen : machine.topologyOf(shape).unseen) text += "Not seen: " + unseen + '\n';
  }
  return text;
}

}  // namespace tutti::topo
