#include "runtime/topology/graph_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "runtime/topology/legs.h"
#include "runtime/topology/xml_file.h"

namespace tutti {
namespace {

using pugi::xml_node;

constexpr int kRings = 0;  // NCCL's ids
constexpr int kTrees = 1;
constexpr int kMostId = 255;
constexpr int kMostChannels = 1024;
constexpr int kMostDevice = 1 << 20;
constexpr double kMostSpeed = 1e6;

bool is(xml_node element, std::string_view name) { return element.name() == name; }

/// Which numbers files know seats (or ports) by: their own, or where these do not tell all apart, their
/// places.
class Numbers {
 public:
  explicit Numbers(std::vector<int> devices) : devices_(std::move(devices)) {
    const std::set<int> different(devices_.begin(), devices_.end());
    if (different.size() == devices_.size() && (different.empty() || *different.begin() >= 0)) return;
    for (std::size_t i = 0; i < devices_.size(); ++i) devices_[i] = static_cast<int>(i);
  }

  int ofPlace(int place) const { return devices_[static_cast<std::size_t>(place)]; }
  std::optional<int> placeOf(int number) const {
    const auto it = std::ranges::find(devices_, number);
    if (it == devices_.end()) return std::nullopt;
    return static_cast<int>(it - devices_.begin());
  }
  std::size_t size() const { return devices_.size(); }

 private:
  std::vector<int> devices_;
};

Numbers numbersOfSeats(const Topology& topology, const std::vector<int>& seats) {
  std::vector<int> devices;
  devices.reserve(seats.size());
  for (const int seat : seats) devices.push_back(topology.nodes[static_cast<std::size_t>(seat)].gpu.device);
  return Numbers(std::move(devices));
}

Numbers numbersOfPorts(const Topology& topology) {
  std::vector<int> devices;
  for (const int port : topology.all(TopologyKind::net)) {
    devices.push_back(topology.nodes[static_cast<std::size_t>(port)].net.device);
  }
  return Numbers(std::move(devices));
}

class Reader {
 public:
  Reader(XmlFile& file, const Topology& topology, const std::vector<int>& seats, bool has_other_hosts)
      : file_(file),
        needs_ports_(has_other_hosts && !portsOf(topology).empty()),
        are_gpus_(!seats.empty() &&
                  topology.nodes[static_cast<std::size_t>(seats.front())].kind == TopologyKind::gpu),
        seats_(numbersOfSeats(topology, seats)),
        ports_(numbersOfPorts(topology)),
        port_nodes_(topology.all(TopologyKind::net)) {}

  std::vector<ChannelGraph> read();

 private:
  ChannelGraph readGraph(xml_node graph);
  HostChannel readChannel(xml_node channel);
  PathClass readClass(xml_node graph, const char* attribute);
  void takeSeat(xml_node gpu, HostChannel& channel, std::vector<bool>& visited);
  int device(xml_node gpu_or_net);
  int port(xml_node net);
  std::string_view seatWord() const { return are_gpus_ ? "GPU" : "rank"; }
  bool flag(xml_node graph, const char* attribute, bool otherwise) {
    return file_.integerOr(graph, attribute, 0, 1, otherwise ? 1 : 0) == 1;
  }

  XmlFile& file_;
  bool needs_ports_;
  bool are_gpus_;  ///< or ranks in host memory
  Numbers seats_;
  Numbers ports_;
  std::vector<int> port_nodes_;
};

std::vector<ChannelGraph> Reader::read() {
  const xml_node root = file_.root();
  if (!is(root, "graphs")) file_.fail(root, fmt::format("<{}>, expected <graphs>", shown(root.name())));
  if (file_.integerOr(root, "version", INT32_MIN, INT32_MAX, 1) != 1) {
    file_.failAttribute(root, "version", "1, the only one there is");
  }
  std::vector<ChannelGraph> graphs;
  std::set<int> ids;
  for (const xml_node graph : root.children()) {
    if (!is(graph, "graph")) {
      file_.remarkElement(graph);
      continue;
    }
    const auto id = file_.integer(graph, "id", 0, kMostId);
    if (!id) file_.failAttribute(graph, "id", "0 for rings or 1 for trees");
    if (!ids.insert(static_cast<int>(*id)).second)
      file_.fail(graph, fmt::format("a second graph of id {}", *id));
    if (*id != kRings && *id != kTrees) continue;
    graphs.push_back(readGraph(graph));
    if ((graphs.back().pattern == ChannelPattern::ring) != (*id == kRings)) {
      file_.failAttribute(graph, "pattern",
                          *id == kRings ? "4 (ring) for id 0" : "1, 2 or 3 (trees) for id 1");
    }
    if (graphs.back().channels.empty()) graphs.pop_back();
  }
  return graphs;
}

PathClass Reader::readClass(xml_node graph, const char* attribute) {
  const std::string_view text = file_.text(graph, attribute);
  if (text.empty()) return PathClass::sys;
  const auto path_class = pathClassOf(text);
  if (!path_class) file_.failAttribute(graph, attribute, "a class of paths such as NVL, PIX or SYS");
  return *path_class;
}

ChannelGraph Reader::readGraph(xml_node graph) {
  file_.expectAttributes(graph, {"id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter",
                                 "latencyinter", "typeintra", "typeinter", "samechannels", "cutshort"});
  ChannelGraph read;
  const auto pattern = file_.integer(graph, "pattern", 1, 4);
  if (!pattern) file_.failAttribute(graph, "pattern", "1 to 4");
  read.pattern = static_cast<ChannelPattern>(*pattern);
  read.crosses_nics = file_.integerOr(graph, "crossnic", 0, 2, 0) != 0;
  read.intra_gbytes_per_s = file_.number(graph, "speedintra", kMostSpeed);
  if (read.intra_gbytes_per_s == 0 && graph.attribute("speedintra")) {
    file_.failAttribute(graph, "speedintra", "more than 0");
  }
  read.inter_gbytes_per_s = file_.number(graph, "speedinter", kMostSpeed);
  file_.number(graph, "latencyinter", kMostSpeed);  // nothing is decided by it
  read.intra_class = readClass(graph, "typeintra");
  read.inter_class = readClass(graph, "typeinter");
  read.same_channels = flag(graph, "samechannels", true);
  read.was_cut_short = flag(graph, "cutshort", false);
  for (const xml_node channel : graph.children()) {
    if (!is(channel, "channel")) {
      file_.remarkElement(channel);
      continue;
    }
    if (read.channels.size() == kMostChannels)
      file_.fail(channel, fmt::format("more than {} channels", kMostChannels));
    read.channels.push_back(readChannel(channel));
  }
  const auto announced = file_.integer(graph, "nchannels", 0, kMostChannels);
  if (announced && *announced != static_cast<std::int64_t>(read.channels.size())) {
    file_.failAttribute(graph, "nchannels", fmt::format("{}, as many as there are", read.channels.size()));
  }
  return read;
}

/// NCCL writes the number in base 16 from 10 on, of hosts that share NVLinks with the host's in the top byte.
int Reader::device(xml_node gpu_or_net) {
  file_.expectAttributes(gpu_or_net, {"dev", "rank"});
  file_.integer(gpu_or_net, "rank", INT32_MIN, INT32_MAX);  // which rank sits where is known otherwise
  constexpr std::uint64_t kOnHost = (std::uint64_t{1} << 56) - 1;
  const std::uint64_t number = file_.bits(gpu_or_net, "dev") & kOnHost;
  return XmlFile::text(gpu_or_net, "dev").empty() || number > kMostDevice ? -1 : static_cast<int>(number);
}

void Reader::takeSeat(xml_node gpu, HostChannel& channel, std::vector<bool>& visited) {
  const int number = device(gpu);
  const std::optional<int> place = seats_.placeOf(number);
  if (!place) {
    file_.failAttribute(gpu, "dev",
                        fmt::format("the number of one of the {} {} of this host", seats_.size(),
                                    are_gpus_ ? "GPUs" : "ranks"));
  }
  if (visited[static_cast<std::size_t>(*place)]) {
    file_.fail(gpu, fmt::format("the channel visits {} {} twice", seatWord(), number));
  }
  visited[static_cast<std::size_t>(*place)] = true;
  channel.order.push_back(*place);
}

int Reader::port(xml_node net) {
  const std::optional<int> place = ports_.placeOf(device(net));
  if (!place)
    file_.failAttribute(net, "dev",
                        fmt::format("the number of one of the {} ports of this host", ports_.size()));
  return port_nodes_[static_cast<std::size_t>(*place)];
}

HostChannel Reader::readChannel(xml_node channel) {
  HostChannel read;
  std::vector<bool> visited(seats_.size());
  for (const xml_node child : channel.children()) {
    if (is(child, "gpu")) {
      if (read.net_out != kNoNode) file_.fail(child, "a GPU after the port that the channel leaves by");
      takeSeat(child, read, visited);
    } else if (is(child, "net")) {
      int& net = read.order.empty() ? read.net_in : read.net_out;
      if (net != kNoNode) file_.fail(child, "a second port at one end of the channel");
      net = port(child);
    } else {
      file_.remarkElement(child);
    }
  }
  if ((read.net_in == kNoNode) != (read.net_out == kNoNode)) {
    file_.fail(channel, "a port at one end of the channel only");
  }
  if (needs_ports_ && read.net_in == kNoNode) {
    file_.fail(channel,
               "the channel has no <net>, and there are several hosts: the file was written for one");
  }
  const auto missing = std::ranges::find(visited, false);
  if (missing != visited.end()) {
    const int place = static_cast<int>(missing - visited.begin());
    file_.fail(channel, fmt::format("the channel leaves out {} {}", seatWord(), seats_.ofPlace(place)));
  }
  return read;
}

void set(xml_node element, const char* attribute, const std::string& value) {
  element.append_attribute(attribute) = value.c_str();
}
void set(xml_node element, const char* attribute, int value) { element.append_attribute(attribute) = value; }

void addDevice(xml_node channel, const char* kind, int number) {
  xml_node element = channel.append_child(kind);
  // NCCL reads it in base 16; older versions in any that the prefix says.
  set(element, "dev", fmt::format(fmt::runtime(number < 10 ? "{}" : "{:#x}"), number));
}

void writeGraph(xml_node graph, const ChannelGraph& graph_found) {
  set(graph, "id", graph_found.pattern == ChannelPattern::ring ? kRings : kTrees);
  set(graph, "pattern", static_cast<int>(graph_found.pattern));
  set(graph, "crossnic", graph_found.crosses_nics ? 1 : 0);
  set(graph, "nchannels", static_cast<int>(graph_found.channels.size()));
  if (graph_found.intra_gbytes_per_s > 0) {
    set(graph, "speedintra", fmt::format("{}", graph_found.intra_gbytes_per_s));
  }
  set(graph, "speedinter", fmt::format("{}", graph_found.inter_gbytes_per_s));
  set(graph, "latencyinter", 0);
  set(graph, "typeintra", std::string(name(graph_found.intra_class)));
  set(graph, "typeinter", std::string(name(graph_found.inter_class)));
  set(graph, "samechannels", graph_found.same_channels ? 1 : 0);
  if (graph_found.was_cut_short) set(graph, "cutshort", 1);
}

}  // namespace

std::vector<ChannelGraph> readGraphXml(std::string_view text, const std::string& name,
                                       const Topology& topology, const std::vector<int>& seats,
                                       bool has_other_hosts, std::vector<std::string>* remarks) {
  XmlFile file(text, name);
  std::vector<ChannelGraph> graphs = Reader(file, topology, seats, has_other_hosts).read();
  if (remarks != nullptr) *remarks = file.remarks();
  return graphs;
}

std::string writeGraphXml(const std::vector<ChannelGraph>& graphs, const Topology& topology,
                          const std::vector<int>& seats) {
  const Numbers gpus = numbersOfSeats(topology, seats);
  const Numbers ports = numbersOfPorts(topology);
  const std::vector<int> port_nodes = topology.all(TopologyKind::net);
  const auto addPort = [&](xml_node channel, int node) {
    if (node == kNoNode) return;
    addDevice(channel, "net",
              ports.ofPlace(static_cast<int>(std::ranges::find(port_nodes, node) - port_nodes.begin())));
  };
  pugi::xml_document document;
  xml_node root = document.append_child("graphs");
  set(root, "version", 1);
  for (const ChannelGraph& graph : graphs) {
    xml_node element = root.append_child("graph");
    writeGraph(element, graph);
    for (const HostChannel& channel : graph.channels) {
      const xml_node child = element.append_child("channel");
      addPort(child, channel.net_in);
      for (const int seat : channel.order) addDevice(child, "gpu", gpus.ofPlace(seat));
      addPort(child, channel.net_out);
    }
  }
  std::ostringstream out;
  document.save(out, "  ", pugi::format_indent | pugi::format_no_declaration, pugi::encoding_utf8);
  return out.str();
}

}  // namespace tutti
