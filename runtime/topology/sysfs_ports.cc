#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <system_error>
#include <tuple>
#include <vector>

#include "runtime/core/interface_names.h"
#include "runtime/core/system_files.h"
#include "runtime/topology/notation.h"
#include "runtime/topology/sysfs.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// A port that is up, and its card.
struct Port {
  std::string bus_id;  ///< empty: not by PCI
  NetDetails net = {};
};

/// Of the PCI device that a folder belongs to; empty: none.
std::string busIdOfFolder(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return "";
  // Between a network device and its PCI device there may be others, such as virtio2.
  for (fs::path part = real; part.has_relative_path(); part = part.parent_path()) {
    if (const auto bus_id = busIdOf(part.filename().string())) return *bus_id;
  }
  return "";
}

/// "b859:9f03:00d4:1a2c".
std::uint64_t guidIn(const fs::path& file) {
  std::string digits = firstLine(file);
  std::erase(digits, ':');
  std::uint64_t guid = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), guid, 16);
  return guid;
}

/// "200 Gb/sec (4X HDR)" in megabits.
double rateIn(const fs::path& file) {
  const std::string line = firstLine(file);
  double gigabits = 0;
  std::from_chars(line.data(), line.data() + line.size(), gigabits);
  return gigabits > 0 && gigabits < 1e6 ? gigabits * 1000 : 0;
}

int numberOf(const fs::path& folder) {
  const std::vector<int> number = numbersOfList(folder.filename().string());
  return number.size() == 1 ? number[0] : 0;
}

/// The card of an RDMA device; Soft-RoCE is made of a network interface.
fs::path cardOf(const fs::path& device, const fs::path& system) {
  std::error_code error;
  if (fs::exists(device / "device", error)) return device / "device";
  return system / "class/net" / firstLine(device / "parent") / "device";
}

std::vector<Port> rdmaPorts(Topology& topology, const fs::path& system) {
  std::vector<Port> ports;
  std::error_code error;
  const bool reaches_gpus = fs::exists(system / "module/nvidia_peermem", error);
  for (const fs::path& device : entriesOf(system / "class/infiniband")) {
    for (const fs::path& folder : entriesOf(device / "ports")) {
      Port port{.bus_id = busIdOfFolder(cardOf(device, system))};
      port.net = {.name = device.filename().string(),
                  .port = numberOf(folder),
                  .mbits_per_s = rateIn(folder / "rate"),
                  .guid = guidIn(device / "node_guid"),
                  .reaches_gpus = reaches_gpus};
      const std::string state = firstLine(folder / "state");
      if (state.find("ACTIVE") != std::string::npos) {
        ports.push_back(std::move(port));
        continue;
      }
      topology.unseen.push_back(fmt::format("RDMA port {}:{}: it is not up ({})", port.net.name,
                                            port.net.port, state.empty() ? "no state" : state));
    }
  }
  return ports;
}

/// What is left of the interfaces where there is nothing better.
enum class Interfaces : std::uint8_t { of_cards, virtual_ones, loopback, never };

Interfaces kindOf(const fs::path& folder, const Port& port) {
  std::error_code error;
  if (isBridgeOfContainers(port.net.name)) return Interfaces::never;
  const auto flags = firstLine(folder / "flags");  // "0x1003"
  const bool is_up = !flags.empty() && (std::strtol(flags.c_str(), nullptr, 16) & 1) != 0;
  if (!is_up || firstLine(folder / "operstate") == "down") return Interfaces::never;
  if (port.net.name == "lo") return Interfaces::loopback;
  return fs::exists(folder / "device", error) ? Interfaces::of_cards : Interfaces::virtual_ones;
}

std::vector<Port> interfacesOf(Topology& topology, const fs::path& system) {
  std::vector<Port> ports;
  Interfaces best = Interfaces::never;
  for (const fs::path& folder : entriesOf(system / "class/net")) {
    Port port{.bus_id = busIdOfFolder(folder / "device")};
    const auto megabits = static_cast<double>(numberIn(folder / "speed", -1));
    port.net = {.name = folder.filename().string(), .mbits_per_s = std::max(megabits, 0.0)};
    const Interfaces kind = kindOf(folder, port);
    if (kind > best || kind == Interfaces::never) continue;
    if (kind < best) ports.clear();
    best = kind;
    ports.push_back(std::move(port));
  }
  if (best != Interfaces::of_cards) {
    topology.unseen.push_back(fmt::format("network cards: {} shows no interface of one that is up{}",
                                          (system / "class/net").string(),
                                          ports.empty() ? "" : "; virtual ones are listed"));
  }
  return ports;
}

/// The card of a port; kNoNode: it is not to be added.
int cardNode(Topology& topology, const fs::path& system, const std::string& bus_id, bool only_known) {
  if (!bus_id.empty()) {
    const int known = topology.find(bus_id);
    if (known == kNoNode && !only_known) return addPciDevice(topology, system, bus_id, TopologyKind::nic);
    const bool is_card =
        known != kNoNode && topology.nodes[static_cast<std::size_t>(known)].kind == TopologyKind::nic;
    return is_card ? known : kNoNode;
  }
  if (only_known) return kNoNode;
  const int numa = topology.all(TopologyKind::numa_node).front();
  topology.nodes.push_back({.kind = TopologyKind::nic, .parent = numa});
  return static_cast<int>(topology.nodes.size()) - 1;
}

/// The nodes of a card's ports.
std::vector<int> portsOf(const Topology& topology, int card) {
  std::vector<int> ports = topology.all(TopologyKind::net);
  std::erase_if(ports,
                [&](int port) { return topology.nodes[static_cast<std::size_t>(port)].parent != card; });
  return ports;
}

}  // namespace

void addPorts(Topology& topology, const fs::path& system, bool only_known) {
  std::vector<Port> ports = rdmaPorts(topology, system);
  if (ports.empty()) ports = interfacesOf(topology, system);
  std::ranges::sort(ports, {}, [](const Port& port) {
    return std::tuple(port.bus_id.empty(), port.bus_id, port.net.name, port.net.port);
  });
  // What a file tells of a card's ports, the system tells better: one by one they are replaced.
  std::map<int, std::vector<int>> told;
  std::map<int, std::size_t> replaced;
  for (Port& port : ports) {
    const int card = cardNode(topology, system, port.bus_id, only_known);
    if (card == kNoNode) continue;
    if (!told.contains(card)) told[card] = portsOf(topology, card);
    if (replaced[card] < told[card].size()) {
      NetDetails& net = topology.nodes[static_cast<std::size_t>(told[card][replaced[card]++])].net;
      port.net.device = net.device;
      if (port.net.mbits_per_s <= 0) port.net.mbits_per_s = net.mbits_per_s;
      net = std::move(port.net);
    } else {
      topology.nodes.push_back({.kind = TopologyKind::net, .parent = card, .net = std::move(port.net)});
    }
  }
}

}  // namespace tutti
