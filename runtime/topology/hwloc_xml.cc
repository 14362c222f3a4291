#include "runtime/topology/hwloc_xml.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "runtime/topology/file_error.h"
#include "runtime/topology/hwloc_cpus.h"
#include "runtime/topology/hwloc_devices.h"

namespace tutti {
namespace {

using pugi::xml_node;

constexpr std::int64_t kMostObjects = 4096;  // in a matrix
constexpr std::int64_t kMostMBytes = 100000000;
constexpr double kPacketShare = 0.8;  // 20 of 25 GB/s of an NVLink are data, as bandwidths.cc has them

void checkVersion(XmlFile& file) {
  const xml_node root = file.root();
  if (std::string_view(root.name()) != "topology") {
    file.fail(root, fmt::format("<{}>, expected <topology>", shown(root.name())));
  }
  const std::string_view version = file.text(root, "version");
  if (version.empty()) {
    file.fail(
        root,
        "XML of hwloc 1; lstopo of hwloc 2 reads it and writes what is needed here (lstopo -i OLD NEW.xml)");
  }
  if (version.substr(0, 2) != "2.") file.failAttribute(root, "version", "2.0, as hwloc 2 writes it");
  const xml_node machine = root.child("object");
  if (!machine) file.fail(root, "no <object>, so no machine");
  if (!isObject(machine, "Machine")) file.failAttribute(machine, "type", "Machine at the top");
}

bool isOfIo(xml_node object) {
  return isObject(object, "Bridge") || isObject(object, "PCIDev") || isObject(object, "OSDev");
}

/// The objects of CPUs at which devices hang.
void findPlaces(xml_node object, std::vector<xml_node>& places) {
  bool has_devices = false;
  for (const xml_node child : object.children("object")) {
    if (isOfIo(child)) {
      has_devices = true;
    } else {
      findPlaces(child, places);
    }
  }
  if (has_devices) places.push_back(object);
}

/// Of elements such as <indexes>1 2 3</indexes>, in the order of the file.
std::vector<std::string_view> wordsOf(xml_node matrix, const char* element) {
  std::vector<std::string_view> words;
  for (const xml_node each : matrix.children(element)) {
    std::string_view text = each.child_value();
    while (true) {
      const std::size_t first = text.find_first_not_of(" \t\r\n");
      if (first == std::string_view::npos) break;
      const std::size_t end = std::min(text.find_first_of(" \t\r\n", first), text.size());
      words.push_back(text.substr(first, end - first));
      text.remove_prefix(end);
    }
  }
  return words;
}

std::optional<std::int64_t> numberOf(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// NVLinks by the bandwidth in MB/s of all links from one device to another.
class NvlinkMatrix {
 public:
  NvlinkMatrix(XmlFile& file, TopologyBuilder& builder, const HwlocDevices& devices)
      : file_(file), builder_(builder), devices_(devices) {}

  void read(xml_node matrix);

 private:
  int endOf(std::string_view word) const;
  void connect(xml_node matrix, int from, int to, double mbytes_per_s);
  bool isGpu(int node) const { return node >= 0 && builder_.at(node).kind == TopologyKind::gpu; }

  static constexpr int kCpu = -2;  // an end that is no device

  XmlFile& file_;
  TopologyBuilder& builder_;
  const HwlocDevices& devices_;
};

/// "OSDev:332", or where all are of one type, "332".
int NvlinkMatrix::endOf(std::string_view word) const {
  const std::size_t colon = word.find(':');
  const std::string_view type = colon == std::string_view::npos ? "OSDev" : word.substr(0, colon);
  if (type != "OSDev" && type != "PCIDev") return kCpu;
  const auto gp_index = numberOf(colon == std::string_view::npos ? word : word.substr(colon + 1));
  return gp_index ? devices_.nodeOf(*gp_index) : kNoNode;
}

void NvlinkMatrix::read(xml_node matrix) {
  const auto size = file_.integer(matrix, "nbobjs", 0, kMostObjects).value_or(0);
  const std::vector<std::string_view> indexes = wordsOf(matrix, "indexes");
  const std::vector<std::string_view> values = wordsOf(matrix, "u64values");
  const auto count = static_cast<std::size_t>(size);
  if (indexes.size() != count || values.size() != count * count) {
    file_.fail(matrix, fmt::format("a matrix of {} objects with {} indexes and {} values", size,
                                   indexes.size(), values.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const auto value = numberOf(values[i * count + j]);
      if (!value || *value < 0 || *value > kMostMBytes) {
        file_.fail(matrix, fmt::format("a value of {}", shown(values[i * count + j])));
      }
      if (i == j || *value == 0) continue;
      connect(matrix, endOf(indexes[i]), endOf(indexes[j]), static_cast<double>(*value));
    }
  }
}

/// What hwloc counts for a link is of both directions from NVLink 3 on.
void NvlinkMatrix::connect(xml_node matrix, int from, int to, double mbytes_per_s) {
  if (!isGpu(from)) return;  // the reverse is made of it
  NvLinks links{.from = from, .to = to};
  if (to == kCpu) {
    links.to = builder_.topology.numaOf(from);
    links.is_c2c = true;
  } else if (to != kNoNode && builder_.at(to).kind == TopologyKind::nvswitch) {
    links.to = builder_.nvSwitch();
  }
  if (links.to == kNoNode ||
      (!links.is_c2c && !isGpu(links.to) && builder_.at(links.to).kind != TopologyKind::nvswitch)) {
    return file_.remark(matrix, "NVLinks to something that is not here");
  }
  const int capability = builder_.at(from).gpu.compute_capability;
  const double each = capability >= 80 ? 50000 : capability >= 70 ? 25000 : 20000;
  const double count = mbytes_per_s / each;
  if (capability > 0 && count == std::floor(count) && count <= kMostLinks) {
    links.count = static_cast<int>(count);
  } else {
    links.gbytes_per_s = std::round(mbytes_per_s * kPacketShare) / 1000;
  }
  if (!builder_.connect(links))
    file_.fail(matrix, fmt::format("more than {} links to one device", kMostLinks));
}

Topology read(XmlFile& file) {
  checkVersion(file);
  const xml_node root = file.root();
  HwlocCpus cpus(file);
  std::vector<xml_node> places;
  findPlaces(root.child("object"), places);
  std::vector<std::vector<xml_node>> by_node(cpus.nodes().size());
  for (const xml_node place : places) by_node[cpus.nodeOf(place)].push_back(place);

  TopologyBuilder builder;
  HwlocDevices devices(file, builder);
  for (std::size_t i = 0; i < by_node.size(); ++i) {
    const int numa = builder.add({.kind = TopologyKind::numa_node, .cpu = cpus.nodes()[i]});
    for (const xml_node place : by_node[i]) devices.add(place, numa);
  }
  NvlinkMatrix nvlinks(file, builder, devices);
  for (const xml_node matrix : root.children()) {
    if (file.text(matrix, "name") == "NVLinkBandwidth") nvlinks.read(matrix);
  }
  builder.complete();
  return std::move(builder.topology);
}

}  // namespace

TopologyFile readHwlocXml(std::string_view text, const std::string& name) {
  XmlFile file(text, name);
  Topology topology = read(file);
  try {
    validate(topology);
  } catch (const std::invalid_argument& error) {
    file.fail(file.root(), error.what());
  }
  TopologyFile found;
  found.hosts.push_back(std::move(topology));
  found.remarks = file.remarks();
  return found;
}

TopologyFile readTopologyFile(const std::string& path) {
  const std::string text = textOfFile(path);
  const std::string root = XmlFile(text, path).root().name();
  if (root == "system") return readNcclXml(text, path);
  if (root == "topology") return readHwlocXml(text, path);
  throw FileError(
      path, 1, fmt::format("<{}> is the root, expected <system> (NCCL) or <topology> (hwloc)", shown(root)));
}

}  // namespace tutti
