#include "runtime/topology/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "runtime/topology/notation.h"
#include "runtime/topology/topology_builder.h"
#include "runtime/topology/xml_file.h"

namespace tutti {
namespace {

using pugi::xml_node;

constexpr int kMostNumber = 1 << 20;  // of devices, ranks, NUMA nodes
constexpr double kMostSpeed = 1e9;    // Mbit/s
constexpr int kMostMBytes = 100000000;
constexpr std::size_t kMostNuma = 1024;  // of a host, as Linux

bool is(xml_node element, std::string_view name) { return element.name() == name; }

/// One host while its elements are read.
struct HostReading {
  TopologyBuilder builder;
  std::map<int, int> numa_lines;
  std::vector<std::pair<xml_node, int>> links;  ///< <nvlink>, <c2c>, <pcilink> and the node they are in
  std::map<int, int> gpu_lines;                 ///< by device number
  std::map<int, int> rank_lines;                ///< by rank
  std::map<int, int> net_lines;                 ///< by number
};

class Reader {
 public:
  explicit Reader(XmlFile& file) : file_(file) {}

  std::vector<Topology> read();

 private:
  HostReading& hostOf(xml_node cpu);
  void readCpu(xml_node cpu);
  std::vector<std::vector<int>> readCaches(xml_node cpu, const std::vector<int>& cpus);
  void readPci(HostReading& host, xml_node pci, int parent, int depth);
  TopologyKind kindOf(xml_node pci, const PciIdentity& identity);
  bool matters(xml_node pci, int depth);
  PciIdentity readIdentity(xml_node pci);
  PciLink readLink(xml_node pci);
  double readSpeed(xml_node pci, const char* attribute);
  int readWidth(xml_node pci, const char* attribute);
  GpuDetails readGpu(HostReading& host, xml_node pci, const PciIdentity& identity);
  void readNic(HostReading& host, xml_node nic, int parent);
  NetDetails readNet(HostReading& host, xml_node net);
  void remarkTwice(std::map<int, int>& lines, xml_node element, const char* attribute, int number);
  void readInside(HostReading& host, xml_node pci, int node, int depth);
  void connect(HostReading& host, xml_node link, int node);
  void connectNvLink(HostReading& host, xml_node link, int gpu);
  void add(HostReading& host, xml_node element, const NvLinks& links);
  Topology finish(HostReading& host);
  /// Whole MB/s, as NCCL has it.
  double gbytes(xml_node link) { return file_.integerOr(link, "bw", 0, kMostMBytes, 0) / 1000.0; }
  std::optional<std::string> target(xml_node link) { return busIdOf(file_.text(link, "target")); }

  XmlFile& file_;
  std::map<std::uint64_t, std::size_t> by_hash_;
  std::vector<HostReading> hosts_;
  std::vector<xml_node> speedless_;  ///< NICs
};

HostReading& Reader::hostOf(xml_node cpu) {
  const auto [it, is_new] = by_hash_.try_emplace(file_.bits(cpu, "host_hash"), hosts_.size());
  if (is_new) hosts_.emplace_back();
  return hosts_[it->second];
}

void Reader::readCpu(xml_node cpu) {
  file_.expectAttributes(
      cpu, {"host_hash", "numaid", "affinity", "arch", "vendor", "familyid", "modelid", "package", "keep"});
  HostReading& host = hostOf(cpu);
  TopologyNode node{.kind = TopologyKind::numa_node};
  node.cpu.numa = file_.integerOr(cpu, "numaid", -1, kMostNumber, 0);
  if (const auto [it, is_new] = host.numa_lines.try_emplace(node.cpu.numa, file_.line(cpu)); !is_new) {
    file_.fail(cpu, fmt::format("NUMA node {} is in line {} already", node.cpu.numa, it->second));
  }
  if (host.numa_lines.size() > kMostNuma) file_.fail(cpu, "too many NUMA nodes in one host");
  node.cpu.package = file_.integerOr(cpu, "package", -1, kMostNumber, -1);
  const auto cpus = cpusOfMask(file_.text(cpu, "affinity"));
  if (!cpus) file_.failAttribute(cpu, "affinity", "words in base 16, such as 000000ff,ffff0000");
  node.cpu.cpus = *cpus;
  node.cpu.caches = readCaches(cpu, *cpus);
  node.cpu.architecture = file_.text(cpu, "arch");
  node.cpu.vendor = file_.text(cpu, "vendor");
  node.cpu.family = file_.integerOr(cpu, "familyid", -1, kMostNumber, 0);
  node.cpu.model = file_.integerOr(cpu, "modelid", -1, kMostNumber, 0);
  const int index = host.builder.add(std::move(node));
  for (const xml_node child : cpu.children()) {
    if (is(child, "pci")) {
      readPci(host, child, index, 1);
    } else if (is(child, "nic")) {
      const int nic = host.builder.add({.kind = TopologyKind::nic, .parent = index});
      readNic(host, child, nic);
    } else if (child.type() == pugi::node_element && !is(child, "cache")) {
      file_.remarkElement(child);
    }
  }
}

std::vector<std::vector<int>> Reader::readCaches(xml_node cpu, const std::vector<int>& cpus) {
  std::vector<std::vector<int>> caches;
  std::vector<bool> is_free(cpus.empty() ? 0 : static_cast<std::size_t>(cpus.back()) + 1);
  for (const int cpu : cpus) is_free[static_cast<std::size_t>(cpu)] = true;
  // Each CPU is behind one of the caches.
  const auto take = [&is_free](int cpu) {
    const auto at = static_cast<std::size_t>(cpu);
    if (at >= is_free.size() || !is_free[at]) return false;
    is_free[at] = false;
    return true;
  };
  for (const xml_node cache : cpu.children("cache")) {
    file_.expectAttributes(cache, {"cpus"});
    auto shared = cpusOfList(file_.text(cache, "cpus"));
    if (!shared || shared->empty()) file_.failAttribute(cache, "cpus", "CPUs such as 0-7,64-71");
    if (!std::ranges::all_of(*shared, take)) {
      file_.fail(cache, "a cache of CPUs that the NUMA node has not, or that another cache has");
    }
    caches.push_back(std::move(*shared));
  }
  return caches;
}

PciIdentity Reader::readIdentity(xml_node pci) {
  const auto word = [&](const char* attribute) {
    return static_cast<std::uint16_t>(file_.integer(pci, attribute, 0, 0xffff).value_or(0));
  };
  return {.device_class = static_cast<std::uint32_t>(file_.integer(pci, "class", 0, 0xffffff).value_or(0)),
          .vendor = word("vendor"),
          .device = word("device"),
          .subsystem_vendor = word("subsystem_vendor"),
          .subsystem_device = word("subsystem_device")};
}

double Reader::readSpeed(xml_node pci, const char* attribute) {
  const auto speed = linkSpeedOf(file_.text(pci, attribute));
  if (!speed) file_.failAttribute(pci, attribute, "a speed such as \"16.0 GT/s PCIe\"");
  return *speed;
}

/// Kernels show 63 or 255 lanes where a device does not answer.
int Reader::readWidth(xml_node pci, const char* attribute) {
  const int width = file_.integerOr(pci, attribute, 0, 255, 0);
  if (width <= 32) return width;
  file_.remark(pci, fmt::format("{} lanes: taken as unknown", width));
  return 0;
}

PciLink Reader::readLink(xml_node pci) {
  return {.gtransfers_per_s = readSpeed(pci, "link_speed"),
          .width = readWidth(pci, "link_width"),
          .most_gtransfers_per_s = readSpeed(pci, "max_link_speed"),
          .most_width = readWidth(pci, "max_link_width")};
}

/// What is inside says it; else the class.
TopologyKind Reader::kindOf(xml_node pci, const PciIdentity& identity) {
  if (pci.child("gpu")) return TopologyKind::gpu;
  if (pci.child("nic")) return TopologyKind::nic;
  if (pci.child("pci")) return TopologyKind::pci_bridge;
  if (isGpuClass(identity.device_class)) return TopologyKind::gpu;
  if (isNicClass(identity.device_class)) return TopologyKind::nic;
  if (isNvSwitch(identity)) return TopologyKind::nvswitch;
  return TopologyKind::pci_bridge;
}

/// A device of another class does only for what is behind it.
bool Reader::matters(xml_node pci, int depth) {
  const PciIdentity identity = readIdentity(pci);
  if (kindOf(pci, identity) != TopologyKind::pci_bridge || isBridgeClass(identity.device_class)) return true;
  if (depth > kMostXmlDepth) return true;  // to be refused
  const auto inside = pci.children("pci");
  return std::any_of(inside.begin(), inside.end(), [&](xml_node each) { return matters(each, depth + 1); });
}

void Reader::readPci(HostReading& host, xml_node pci, int parent, int depth) {
  if (depth > kMostXmlDepth) file_.fail(pci, fmt::format("more than {} <pci> in each other", kMostXmlDepth));
  file_.expectAttributes(
      pci, {"busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
            "link_width", "max_link_speed", "max_link_width", "guessed", "keep"});
  TopologyNode node{.parent = parent};
  node.is_guessed = file_.integerOr(pci, "guessed", 0, 1, 0) == 1;
  const auto bus_id = busIdOf(file_.text(pci, "busid"));
  if (!bus_id) file_.failAttribute(pci, "busid", "a bus id such as 0000:3b:00.0");
  if (host.builder.find(*bus_id) != kNoNode) {
    file_.fail(pci, fmt::format("the bus id {} is there twice on one host", *bus_id));
  }
  node.bus_id = *bus_id;
  node.pci = readIdentity(pci);
  node.link = readLink(pci);
  node.kind = kindOf(pci, node.pci);
  if (!matters(pci, depth)) {
    file_.remark(pci, fmt::format("{}: class {:#08x} is no GPU, no NIC and no bridge", node.bus_id,
                                  node.pci.device_class));
    return;
  }
  if (node.kind == TopologyKind::gpu) node.gpu = readGpu(host, pci, node.pci);
  const int index = host.builder.add(std::move(node));
  readInside(host, pci, index, depth);
}

void Reader::readInside(HostReading& host, xml_node pci, int node, int depth) {
  const TopologyKind kind = host.builder.at(node).kind;
  if (kind == TopologyKind::nic && !pci.child("nic")) {
    NetDetails port;
    port.device = kUnnumbered;
    port.reaches_gpus = true;
    host.builder.add({.kind = TopologyKind::net, .parent = node, .net = port});
    speedless_.push_back(pci);
  }
  for (const xml_node child : pci.children()) {
    if (is(child, "pci") && kind == TopologyKind::pci_bridge) {
      readPci(host, child, node, depth + 1);
    } else if (is(child, "nic") && kind == TopologyKind::nic) {
      readNic(host, child, node);
    } else if (is(child, "pcilink") && kind == TopologyKind::pci_bridge) {
      host.links.emplace_back(child, node);
    } else if (is(child, "gpu") && kind == TopologyKind::gpu) {
      if (child != pci.child("gpu")) file_.remark(child, "a second <gpu>");
    } else if (child.type() == pugi::node_element) {
      file_.remarkElement(child);
    }
  }
}

GpuDetails Reader::readGpu(HostReading& host, xml_node pci, const PciIdentity& identity) {
  const xml_node gpu = pci.child("gpu");
  GpuDetails details;
  details.device = kUnnumbered;
  if (!gpu) {
    details.reached_by_rdma = identity.device_class >> 8 != kDisplayClass >> 8;
    return details;
  }
  file_.expectAttributes(gpu, {"dev", "sm", "rank", "gdr", "model", "keep"});
  details.device = file_.integerOr(gpu, "dev", -1, kMostNumber, kUnnumbered);
  if (details.device >= 0) {
    const auto [it, is_new] = host.gpu_lines.try_emplace(details.device, file_.line(gpu));
    if (!is_new) file_.fail(gpu, fmt::format("GPU {} is in line {} already", details.device, it->second));
  }
  details.compute_capability = file_.integerOr(gpu, "sm", 0, 999, 0);
  details.rank = file_.integerOr(gpu, "rank", -1, kMostNumber, -1);
  remarkTwice(host.rank_lines, gpu, "rank", details.rank);
  details.reached_by_rdma = file_.integerOr(gpu, "gdr", 0, 1, 0) == 1;
  details.model = file_.text(gpu, "model");
  const int index = static_cast<int>(host.builder.topology.nodes.size());  // what it will be
  for (const xml_node child : gpu.children()) {
    if (is(child, "nvlink") || is(child, "c2c")) {
      host.links.emplace_back(child, index);
    } else if (child.type() == pugi::node_element) {
      file_.remarkElement(child);
    }
  }
  return details;
}

void Reader::readNic(HostReading& host, xml_node nic, int parent) {
  file_.expectAttributes(nic, {"keep"});
  for (const xml_node child : nic.children()) {
    if (is(child, "net")) {
      host.builder.add({.kind = TopologyKind::net, .parent = parent, .net = readNet(host, child)});
    } else if (child.type() == pugi::node_element && !is(child, "gin") && !is(child, "rma")) {
      file_.remarkElement(child);
    }
  }
}

void Reader::remarkTwice(std::map<int, int>& lines, xml_node element, const char* attribute, int number) {
  if (number < 0) return;
  const auto [it, is_new] = lines.try_emplace(number, file_.line(element));
  if (!is_new) {
    file_.remark(element, fmt::format("{} {} of <{}> is in line {}, too", attribute, number, element.name(),
                                      it->second));
  }
}

NetDetails Reader::readNet(HostReading& host, xml_node net) {
  file_.expectAttributes(
      net, {"name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "keep"});
  NetDetails details;
  details.name = file_.text(net, "name");
  details.device = file_.integerOr(net, "dev", -1, kMostNumber, kUnnumbered);
  remarkTwice(host.net_lines, net, "dev", details.device);
  details.port = file_.integerOr(net, "port", 0, kMostNumber, 0);
  // An interface that is down shows -1.
  if (file_.text(net, "speed") != "-1") details.mbits_per_s = file_.number(net, "speed", kMostSpeed);
  details.latency_us = file_.number(net, "latency", 1e6);
  details.guid = file_.bits(net, "guid");
  details.most_connections = file_.integerOr(net, "maxconn", 0, INT32_MAX, NetDetails().most_connections);
  details.reaches_gpus = file_.integerOr(net, "gdr", 0, 1, 0) == 1;
  details.reduces = file_.integerOr(net, "coll", 0, 1, 0) == 1;
  return details;
}

void Reader::add(HostReading& host, xml_node element, const NvLinks& links) {
  if (!host.builder.connect(links)) {
    file_.fail(element, fmt::format("more than {} links to one device", kMostLinks));
  }
}

void Reader::connect(HostReading& host, xml_node link, int node) {
  if (is(link, "nvlink")) return connectNvLink(host, link, node);
  if (is(link, "c2c")) {
    file_.expectAttributes(link, {"bw", "count", "keep"});
    NvLinks links{.from = node, .to = host.builder.topology.numaOf(node), .is_c2c = true};
    links.count = file_.integerOr(link, "count", 1, kMostLinks, 1);
    links.gbytes_per_s = gbytes(link);
    add(host, link, links);
    return;
  }
  file_.expectAttributes(link, {"target", "keep"});
  const auto bus_id = target(link);
  const int other = bus_id ? host.builder.find(*bus_id) : kNoNode;
  if (other == kNoNode || other == node || host.builder.at(other).kind != TopologyKind::pci_bridge) {
    file_.remark(link, fmt::format("<pcilink> to {}, which is no other bridge here",
                                   shown(XmlFile::text(link, "target"))));
    return;
  }
  host.builder.connectSwitches(node, other);
}

void Reader::connectNvLink(HostReading& host, xml_node link, int gpu) {
  file_.expectAttributes(link, {"target", "count", "tclass", "bw", "keep"});
  NvLinks links{.from = gpu};
  links.count = file_.integerOr(link, "count", 0, kMostLinks, 1);
  links.gbytes_per_s = gbytes(link);
  const auto target_class = file_.integer(link, "tclass", 0, 0xffffff).value_or(0);
  if (links.count == 0) return file_.remark(link, "an <nvlink> of count 0");
  if (target_class == 0x068001) {  // POWER9
    links.to = host.builder.topology.numaOf(gpu);
    links.is_c2c = true;
  } else if (target_class >> 8 == 0x0680) {
    links.to = host.builder.nvSwitch();
  } else {
    const auto bus_id = target(link);
    links.to = bus_id ? host.builder.find(*bus_id) : kNoNode;
    if (links.to != kNoNode && host.builder.at(links.to).kind == TopologyKind::nvswitch)
      links.to = host.builder.nvSwitch();
  }
  const std::string text = fmt::format("an <nvlink> to {}", shown(XmlFile::text(link, "target")));
  if (links.to == kNoNode) return file_.remark(link, text + ", which is not here");
  if (links.to == gpu) return file_.remark(link, text + ", which is the GPU itself");
  const TopologyKind kind = host.builder.at(links.to).kind;
  if (!links.is_c2c && kind != TopologyKind::gpu && kind != TopologyKind::nvswitch) {
    return file_.remark(link, text + ", which is no GPU and no NVSwitch");
  }
  add(host, link, links);
}

Topology Reader::finish(HostReading& host) {
  for (const auto& [link, node] : host.links) connect(host, link, node);
  const auto missing = host.builder.complete();
  const Topology& topology = host.builder.topology;
  for (const auto& [from, to] : missing) {
    if (topology.nodes[static_cast<std::size_t>(from)].kind != TopologyKind::gpu) continue;  // never listed
    file_.remark(file_.root(), fmt::format("NVLinks from {} to {} are not listed, but the reverse",
                                           topology.label(from), topology.label(to)));
  }
  try {
    validate(topology);
  } catch (const std::invalid_argument& error) {
    file_.fail(file_.root(), error.what());
  }
  return std::move(host.builder.topology);
}

std::vector<Topology> Reader::read() {
  const xml_node system = file_.root();
  if (!is(system, "system")) file_.fail(system, fmt::format("<{}>, expected <system>", shown(system.name())));
  file_.expectAttributes(system, {"version", "keep"});
  if (file_.integerOr(system, "version", INT32_MIN, INT32_MAX, 1) != 1) {
    file_.failAttribute(system, "version", "1, the only one there is");
  }
  for (const xml_node child : system.children()) {
    if (is(child, "cpu")) {
      readCpu(child);
    } else if (child.type() == pugi::node_element) {
      file_.remarkElement(child);
    }
  }
  if (speedless_.size() == 1) file_.remark(speedless_[0], "a NIC without a speed: taken as 10 Gbit/s");
  if (speedless_.size() > 1) {
    file_.remark(speedless_[0],
                 fmt::format("{} NICs without a speed, this one the first: each taken as 10 Gbit/s",
                             speedless_.size()));
  }
  if (hosts_.empty()) file_.fail(system, "no <cpu>, so no host");
  std::vector<Topology> hosts;
  for (HostReading& host : hosts_) hosts.push_back(finish(host));
  return hosts;
}

}  // namespace

TopologyFile readNcclXml(std::string_view text, const std::string& name) {
  XmlFile file(text, name);
  std::vector<Topology> hosts = Reader(file).read();
  return {std::move(hosts), file.remarks()};
}

}  // namespace tutti
