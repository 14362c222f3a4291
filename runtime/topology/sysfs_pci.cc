#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

#include "runtime/core/system_files.h"
#include "runtime/topology/notation.h"
#include "runtime/topology/sysfs.h"
#include "runtime/topology/topology_builder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kNvidia = 0x10de;

fs::path folderOf(const fs::path& system, const std::string& bus_id) {
  return system / "bus/pci/devices" / bus_id;
}

/// "0x10de"; 0 where there is none.
std::uint32_t bitsIn(const fs::path& file) {
  const std::string line = firstLine(file);
  std::uint32_t bits = 0;
  if (line.starts_with("0x")) std::from_chars(line.data() + 2, line.data() + line.size(), bits, 16);
  return bits;
}

PciIdentity identityOf(const fs::path& folder) {
  const auto shortIn = [&folder](const char* file) {
    return static_cast<std::uint16_t>(bitsIn(folder / file));
  };
  return {.device_class = bitsIn(folder / "class"),
          .vendor = shortIn("vendor"),
          .device = shortIn("device"),
          .subsystem_vendor = shortIn("subsystem_vendor"),
          .subsystem_device = shortIn("subsystem_device")};
}

/// The devices from the root down to this one.
std::vector<std::string> wayTo(const fs::path& system, const std::string& bus_id) {
  std::vector<std::string> way;
  std::error_code error;
  const fs::path real = fs::canonical(folderOf(system, bus_id), error);
  if (error) return way;
  for (const fs::path& part : real) {
    if (busIdOf(part.string()) == part.string()) way.push_back(part.string());
  }
  return way;
}

/// Of the devices on the way the switches, from the root down, and the device itself. A device hangs at a
/// port, which belongs to what is above it: the root, or the upstream port of a switch, which stands for the
/// switch.
std::vector<std::string> switchesAbove(const std::vector<std::string>& way) {
  std::vector<std::string> found;
  for (std::size_t i = way.size(); i > 0; i -= std::min<std::size_t>(i, 2)) found.push_back(way[i - 1]);
  std::ranges::reverse(found);
  return found;
}

/// The node of that number, or the first one.
int numaNode(const Topology& topology, int number) {
  const std::vector<int> nodes = topology.all(TopologyKind::numa_node);
  const auto found = std::ranges::find_if(
      nodes, [&](int node) { return topology.nodes[static_cast<std::size_t>(node)].cpu.numa == number; });
  return found == nodes.end() ? nodes.front() : *found;
}

struct NumaPlace {
  int node;
  bool is_guessed;
};

NumaPlace numaPlaceOf(Topology& topology, const fs::path& folder, const std::string& bus_id, int otherwise) {
  int number = static_cast<int>(numberIn(folder / "numa_node", -1));
  if (number < 0) number = otherwise;
  const int node = numaNode(topology, number);
  const bool is_guessed = topology.nodes[static_cast<std::size_t>(node)].cpu.numa != number &&
                          topology.all(TopologyKind::numa_node).size() > 1;
  if (is_guessed) {
    topology.unseen.push_back(fmt::format(
        "the NUMA node of {}: the system tells {}, so it is taken for {}", bus_id,
        number < 0 ? "none" : fmt::format("one without CPUs ({})", number), topology.label(node)));
  }
  return {node, is_guessed};
}

double speedIn(const fs::path& file) { return linkSpeedOf(firstLine(file)).value_or(0); }

/// 63 and 255 are how devices without a link say so.
int widthIn(const fs::path& file) {
  const auto width = numberIn(file, 0);
  return width > 0 && width <= 32 ? static_cast<int>(width) : 0;
}

template <class T>
T lesserKnown(T a, T b) {
  return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
}

template <class T>
void fill(T& known, T seen) {
  if (known == T{}) known = seen;
}

PciLink linkOf(const fs::path& device, TopologyKind kind) {
  std::error_code error;
  const fs::path real = fs::canonical(device, error);
  if (error) return {};
  const fs::path port = busIdOf(real.parent_path().filename().string()) ? real.parent_path() : fs::path();
  PciLink link{.gtransfers_per_s = speedIn(real / "current_link_speed"),
               .width = widthIn(real / "current_link_width"),
               .most_gtransfers_per_s = speedIn(real / "max_link_speed"),
               .most_width = widthIn(real / "max_link_width")};
  if (!port.empty()) {
    link.most_gtransfers_per_s = lesserKnown(link.most_gtransfers_per_s, speedIn(port / "max_link_speed"));
    link.most_width = lesserKnown(link.most_width, widthIn(port / "max_link_width"));
  }
  // The link of a GPU runs slower while that has nothing to do.
  if (kind == TopologyKind::gpu && link.most_gtransfers_per_s > 0)
    link.gtransfers_per_s = link.most_gtransfers_per_s;
  return link;
}

/// nullopt: nothing that matters.
std::optional<TopologyKind> kindOf(const PciIdentity& pci) {
  if (isGpuClass(pci.device_class) && pci.vendor == kNvidia) return TopologyKind::gpu;
  if (isNvSwitch(pci)) return TopologyKind::nvswitch;
  if (isNicClass(pci.device_class)) return TopologyKind::nic;
  return std::nullopt;
}

}  // namespace

int addPciDevice(Topology& topology, const fs::path& system, const std::string& bus_id, TopologyKind kind,
                 int numa) {
  if (const int known = topology.find(bus_id); known != kNoNode) return known;
  const std::vector<std::string> way = wayTo(system, bus_id);
  if (way.empty()) {
    const int node = numaNode(topology, numa);
    topology.unseen.push_back(fmt::format("the place of {}: {} does not show it, so it hangs at {}", bus_id,
                                          (system / "bus/pci").string(), topology.label(node)));
    const bool is_told = topology.nodes[static_cast<std::size_t>(node)].cpu.numa == numa;
    const bool is_guessed = !is_told && topology.all(TopologyKind::numa_node).size() > 1;
    topology.nodes.push_back({.kind = kind, .parent = node, .is_guessed = is_guessed, .bus_id = bus_id});
    return static_cast<int>(topology.nodes.size()) - 1;
  }
  int parent = kNoNode;
  for (const std::string& step : switchesAbove(way)) {
    int node = topology.find(step);
    if (node == kNoNode) {
      NumaPlace place{parent, false};
      if (parent == kNoNode) place = numaPlaceOf(topology, folderOf(system, bus_id), bus_id, numa);
      topology.nodes.push_back({.kind = step == bus_id ? kind : TopologyKind::pci_bridge,
                                .parent = place.node,
                                .is_guessed = place.is_guessed,
                                .bus_id = step});
      node = static_cast<int>(topology.nodes.size()) - 1;
    }
    parent = node;
  }
  return parent;
}

void addPciDevices(Topology& topology, const fs::path& system) {
  const auto devices = entriesOf(system / "bus/pci/devices");
  if (devices.empty()) {
    topology.unseen.push_back(
        fmt::format("PCI devices: {} has none (containers and virtual machines hide it)",
                    (system / "bus/pci/devices").string()));
  }
  for (const fs::path& device : devices) {
    // Most devices are of no interest by their class alone.
    PciIdentity pci{.device_class = bitsIn(device / "class")};
    pci.vendor = static_cast<std::uint16_t>(bitsIn(device / "vendor"));
    if (const auto kind = kindOf(pci)) addPciDevice(topology, system, device.filename().string(), *kind);
  }
}

void fillPci(Topology& topology, const fs::path& system) {
  for (TopologyNode& node : topology.nodes) {
    if (node.bus_id.empty()) continue;
    const fs::path folder = folderOf(system, node.bus_id);
    const PciIdentity pci = identityOf(folder);
    fill(node.pci.device_class, pci.device_class);
    fill(node.pci.vendor, pci.vendor);
    fill(node.pci.device, pci.device);
    fill(node.pci.subsystem_vendor, pci.subsystem_vendor);
    fill(node.pci.subsystem_device, pci.subsystem_device);
    const PciLink link = linkOf(folder, node.kind);
    fill(node.link.gtransfers_per_s, link.gtransfers_per_s);
    fill(node.link.width, link.width);
    fill(node.link.most_gtransfers_per_s, link.most_gtransfers_per_s);
    fill(node.link.most_width, link.most_width);
  }
}

}  // namespace tutti
