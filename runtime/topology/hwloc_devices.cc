#include "runtime/topology/hwloc_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/topology/bandwidths.h"
#include "runtime/topology/hwloc_cpus.h"
#include "runtime/topology/notation.h"

namespace tutti {
namespace {

using pugi::xml_node;

constexpr std::uint16_t kNvidia = 0x10de;
constexpr int kMostNumber = 1 << 20;
constexpr double kMostGBytes = 1024;

bool isNetwork(xml_node object) {
  const std::string_view type = XmlFile::text(object, "osdev_type");
  return isObject(object, "OSDev") &&
         (type == "2" || type == "3" || type == "Network" || type == "OpenFabrics");
}
bool isRdma(xml_node object) {
  const std::string_view type = XmlFile::text(object, "osdev_type");
  return isObject(object, "OSDev") && (type == "3" || type == "OpenFabrics");
}

/// GB/s of a link as hwloc computes them: transfers x lanes x encoding / 8.
PciLink linkOf(double gbytes_per_s) {
  if (gbytes_per_s <= 0) return {};
  constexpr double kGenerations[] = {2.5, 5, 8, 16, 32, 64};
  for (const double transfers : kGenerations) {
    const double encoding = transfers < 8 ? 8.0 / 10 : transfers < 64 ? 128.0 / 130 : 242.0 / 256;
    for (const int width : {1, 2, 4, 8, 12, 16}) {
      const double fits = transfers * width * encoding / 8;
      if (std::abs(fits - gbytes_per_s) < 0.01 * fits) return {.gtransfers_per_s = transfers, .width = width};
    }
  }
  return {};
}

/// The slower of two, of which either may be unknown.
PciLink slower(const PciLink& a, const PciLink& b) {
  if (a == PciLink()) return b;
  return b == PciLink() || pciGBytes(a) <= pciGBytes(b) ? a : b;
}

/// "0604 [1014:03dc] [0000:0000] 00".
bool parsePciType(std::string_view text, PciIdentity& identity) {
  std::uint16_t numbers[5] = {};
  constexpr std::string_view kSeparators[] = {" [", ":", "] [", ":", "]"};
  for (int i = 0; i < 5; ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i], 16);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.substr(0, kSeparators[i].size()) != kSeparators[i]) return false;
    text.remove_prefix(kSeparators[i].size());
  }
  identity = {.device_class = std::uint32_t{numbers[0]} << 8,
              .vendor = numbers[1],
              .device = numbers[2],
              .subsystem_vendor = numbers[3],
              .subsystem_device = numbers[4]};
  return true;
}

/// "cuda12" to 12; -1: another name.
int numberAfter(std::string_view text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return -1;
  text.remove_prefix(prefix.size());
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= kMostNumber
             ? number
             : -1;
}

/// "f452:1403:0002:1234"; 0: something else.
std::uint64_t guidOf(std::string_view text) {
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits), [](char c) { return c != ':'; });
  std::uint64_t guid = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), guid, 16);
  return guid;
}

/// By the name that NVIDIA gives it; 0: unknown.
int capabilityOf(std::string_view model) {
  constexpr std::pair<std::string_view, int> kModels[] = {
      {"P100", 60}, {"V100", 70}, {"T4", 75},    {"A100", 80}, {"A800", 80}, {"A30", 80},
      {"A40", 86},  {"A10", 86},  {"L40", 89},   {"L4", 89},   {"H100", 90}, {"H200", 90},
      {"H800", 90}, {"H20", 90},  {"B100", 100}, {"B200", 100}};
  for (const auto& [part, capability] : kModels) {
    if (model.find(part) != std::string_view::npos) return capability;
  }
  return 0;
}

std::string slotOf(const TopologyNode& node) { return node.bus_id.substr(0, node.bus_id.find('.')); }

}  // namespace

void HwlocDevices::add(xml_node object, int parent) {
  for (const Device& device : collect(object, 1)) addTree(device, parent);
}

int HwlocDevices::nodeOf(std::int64_t gp_index) const {
  const auto it = by_gp_index_.find(gp_index);
  return it == by_gp_index_.end() ? kNoNode : it->second;
}

std::vector<HwlocDevices::Device> HwlocDevices::collect(xml_node parent, int depth) {
  if (depth > kMostXmlDepth)
    file_.fail(parent, fmt::format("more than {} bridges in each other", kMostXmlDepth));
  std::vector<Device> devices;
  for (const xml_node object : parent.children("object")) {
    if (isObject(object, "Bridge")) {
      std::vector<Device> behind = collectBridge(object, depth);
      std::ranges::move(behind, std::back_inserter(devices));
    } else if (Device device; readDevice(object, device)) {
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

/// Where there is more than one slot behind it, the bridge is a PCI switch; else a port on the way. Those of
/// hosts (without a bus id) are none of both.
std::vector<HwlocDevices::Device> HwlocDevices::collectBridge(xml_node bridge, int depth) {
  std::vector<Device> behind = collect(bridge, depth + 1);
  if (behind.empty() || !bridge.attribute("pci_busid")) return behind;
  Device device{.object = bridge, .node = readPci(bridge)};
  std::set<std::string> slots;
  for (const Device& each : behind) slots.insert(slotOf(each.node));
  if (slots.size() > 1) {
    device.children = std::move(behind);
    behind.clear();
    behind.push_back(std::move(device));
  } else {
    for (Device& each : behind) each.node.link = slower(each.node.link, device.node.link);
  }
  return behind;
}

TopologyNode HwlocDevices::readPci(xml_node object) {
  TopologyNode node;
  const auto bus_id = busIdOf(file_.text(object, "pci_busid"));
  if (!bus_id) file_.failAttribute(object, "pci_busid", "a bus id such as 0000:3b:00.0");
  node.bus_id = *bus_id;
  if (!parsePciType(file_.text(object, "pci_type"), node.pci)) {
    file_.failAttribute(object, "pci_type", "such as 0302 [10de:15f9] [10de:116b] a1");
  }
  node.link = linkOf(file_.number(object, "pci_link_speed", kMostGBytes));
  return node;
}

/// False: it does not matter to us.
bool HwlocDevices::readDevice(xml_node object, Device& device) {
  device.object = object;
  device.node.kind = TopologyKind::nic;
  // Not by PCI, or PCI is not shown.
  if (isNetwork(object)) return !isObject(object.parent(), "Bridge");
  if (!isObject(object, "PCIDev")) return false;
  device.node = readPci(object);
  const PciIdentity& pci = device.node.pci;
  if (isGpuClass(pci.device_class) && (pci.vendor == kNvidia || pci.device_class == 0x030200)) {
    device.node.kind = TopologyKind::gpu;
    device.node.gpu = readGpu(object);
    device.node.gpu.reached_by_rdma = pci.device_class >> 8 != kDisplayClass >> 8;
    return true;
  }
  device.node.kind = isNvSwitch(pci) ? TopologyKind::nvswitch : TopologyKind::nic;
  const auto system_devices = object.children("object");
  return isNvSwitch(pci) || isNicClass(pci.device_class) ||
         std::any_of(system_devices.begin(), system_devices.end(), isNetwork);
}

GpuDetails HwlocDevices::readGpu(xml_node object) {
  GpuDetails gpu;
  int cuda = -1;
  int nvml = -1;
  for (const xml_node system_device : object.children("object")) {
    const std::string_view name = XmlFile::text(system_device, "name");
    cuda = std::max(cuda, numberAfter(name, "cuda"));
    nvml = std::max(nvml, numberAfter(name, "nvml"));
    if (gpu.model.empty()) gpu.model = infoOf(system_device, "GPUModel");
  }
  gpu.device = cuda >= 0 ? cuda : nvml >= 0 ? nvml : kUnnumbered;
  // CUDA and NVML may count differently, and not all GPUs have both numbers.
  if (gpu.device != kUnnumbered && !gpu_numbers_.insert(gpu.device).second) {
    file_.remark(object, fmt::format("GPU {} is there twice: this one gets another number", gpu.device));
    gpu.device = kUnnumbered;
  }
  gpu.compute_capability = capabilityOf(gpu.model);
  return gpu;
}

void HwlocDevices::addTree(const Device& device, int parent) {
  TopologyNode node = device.node;
  node.parent = parent;
  if (!node.bus_id.empty() && builder_.find(node.bus_id) != kNoNode) {
    file_.fail(device.object, fmt::format("the bus id {} is there twice", node.bus_id));
  }
  const int index = builder_.add(std::move(node));
  const auto remember = [&](xml_node object) {
    const auto gp_index = file_.integer(object, "gp_index", -1, INT64_MAX);
    if (gp_index) by_gp_index_.emplace(*gp_index, index);
  };
  remember(device.object);
  for (const xml_node system_device : device.object.children("object")) remember(system_device);
  if (device.node.kind == TopologyKind::nic) addPorts(device, index);
  for (const Device& child : device.children) addTree(child, index);
}

void HwlocDevices::addPorts(const Device& device, int node) {
  std::vector<xml_node> network;
  if (isNetwork(device.object)) network.push_back(device.object);
  for (const xml_node child : device.object.children("object")) {
    if (isNetwork(child)) network.push_back(child);
  }
  if (network.empty()) {
    file_.remark(device.object,
                 fmt::format("{} has no network device: not used", builder_.topology.label(node)));
  }
  const bool has_rdma = std::ranges::any_of(network, isRdma);
  for (const xml_node system_device : network) {
    if (isRdma(system_device)) {
      addRdmaPorts(system_device, node);
    } else if (!has_rdma) {
      NetDetails port;
      port.name = XmlFile::text(system_device, "name");
      addPort(node, port);
    }
  }
}

/// Its ports are those of which anything is said: "Port2State". 4 is "active".
void HwlocDevices::addRdmaPorts(xml_node system_device, int node) {
  std::set<int> ports;
  for (const xml_node info : system_device.children("info")) {
    std::string_view name = XmlFile::text(info, "name");
    name = name.substr(0, name.find_first_of("SLG", 4));
    const int port = numberAfter(name, "Port");
    if (port >= 1 && port <= 255) ports.insert(port);
  }
  if (ports.empty()) ports.insert(1);
  for (const int port : ports) {
    NetDetails details;
    details.name = XmlFile::text(system_device, "name");
    details.port = port;
    details.guid = guidOf(infoOf(system_device, "NodeGUID"));
    details.reaches_gpus = true;
    const std::string_view state = infoOf(system_device, fmt::format("Port{}State", port));
    if (!state.empty() && state != "4") {
      file_.remark(system_device, fmt::format("port {} of {} is not active", port, details.name));
    } else {
      addPort(node, details);
    }
  }
}

void HwlocDevices::addPort(int node, NetDetails port) {
  port.device = kUnnumbered;
  builder_.add({.kind = TopologyKind::net, .parent = node, .net = std::move(port)});
}

}  // namespace tutti
