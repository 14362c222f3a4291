#include <fmt/format.h>

#include <cmath>
#include <pugixml.hpp>
#include <sstream>
#include <stdexcept>

#include "runtime/topology/nccl_xml.h"
#include "runtime/topology/notation.h"
#include "runtime/topology/plain_text.h"

namespace tutti {
namespace {

using pugi::xml_node;

std::string hex(std::uint64_t value, int digits) { return fmt::format("0x{:0{}x}", value, digits); }

/// 200000, 0.25: NCCL reads whole numbers with no exponent; what has none reads back to the same.
std::string plain(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}
std::string mbytes(double gbytes_per_s) { return plain(std::round(gbytes_per_s * 1000)); }

/// As kernels write it, "16.0 GT/s PCIe"; what has more digits keeps them.
std::string speed(double gtransfers_per_s) {
  if (gtransfers_per_s <= 0) return "";
  const double tenths = gtransfers_per_s * 10;
  return tenths == std::floor(tenths) ? fmt::format("{:.1f} GT/s PCIe", gtransfers_per_s)
                                      : fmt::format("{} GT/s PCIe", gtransfers_per_s);
}

void set(xml_node element, const char* attribute, const std::string& value) {
  element.append_attribute(attribute) = plainText(value).c_str();
}
void set(xml_node element, const char* attribute, int value) { element.append_attribute(attribute) = value; }

class Writer {
 public:
  explicit Writer(const Topology& host) : host_(host), children_(host.nodes.size()) {
    for (std::size_t i = 0; i < host.nodes.size(); ++i) {
      const int parent = host.nodes[i].parent;
      if (parent != kNoNode) children_[static_cast<std::size_t>(parent)].push_back(static_cast<int>(i));
    }
  }

  /// `host_hash` empty: there is one host.
  void write(xml_node system, const std::string& host_hash) const;

 private:
  void writeNuma(xml_node cpu, const CpuDetails& details) const;
  void writeChildren(xml_node element, int parent) const;
  void writePci(xml_node pci, int node) const;
  void writeGpu(xml_node gpu, int node) const;
  void writeLinks(xml_node gpu, const NvLinks& links) const;
  void writeNic(xml_node nic, int node) const;

  const TopologyNode& at(int node) const { return host_.nodes[static_cast<std::size_t>(node)]; }

  const Topology& host_;
  std::vector<std::vector<int>> children_;
};

void Writer::write(xml_node system, const std::string& host_hash) const {
  for (const std::string& unseen : host_.unseen) {
    std::string text = " not seen: " + plainText(unseen) + " ";
    for (std::size_t i = text.find("--"); i != std::string::npos; i = text.find("--", i)) text[i] = ' ';
    system.append_child(pugi::node_comment).set_value(text.c_str());
  }
  for (std::size_t i = 0; i < host_.nodes.size(); ++i) {
    const TopologyNode& node = host_.nodes[i];
    if (node.kind != TopologyKind::numa_node) continue;
    const xml_node cpu = system.append_child("cpu");
    if (!host_hash.empty()) set(cpu, "host_hash", host_hash);
    writeNuma(cpu, node.cpu);
    writeChildren(cpu, static_cast<int>(i));
  }
}

void Writer::writeNuma(xml_node cpu, const CpuDetails& details) const {
  set(cpu, "numaid", details.numa);
  set(cpu, "affinity", maskOfCpus(details.cpus));
  set(cpu, "arch", details.architecture);
  set(cpu, "vendor", details.vendor);
  set(cpu, "familyid", details.family);
  set(cpu, "modelid", details.model);
  if (details.package >= 0) set(cpu, "package", details.package);
  for (const std::vector<int>& cache : details.caches) {
    xml_node element = cpu.append_child("cache");
    set(element, "cpus", listOfCpus(cache));
  }
}

void Writer::writeChildren(xml_node element, int parent) const {
  for (const int child : children_[static_cast<std::size_t>(parent)]) {
    const TopologyNode& node = at(child);
    if (node.kind == TopologyKind::nic && node.bus_id.empty()) {
      writeNic(element.append_child("nic"), child);
    } else if (!node.bus_id.empty()) {
      writePci(element.append_child("pci"), child);
    }
  }
}

void Writer::writePci(xml_node pci, int index) const {
  const TopologyNode& node = at(index);
  set(pci, "busid", node.bus_id);
  if (node.is_guessed) set(pci, "guessed", 1);
  set(pci, "class", hex(node.pci.device_class, 6));
  // What is unknown is left out: NCCL looks for that itself, and believes what it reads.
  if (node.pci.vendor != 0 || node.pci.device != 0) {
    set(pci, "vendor", hex(node.pci.vendor, 4));
    set(pci, "device", hex(node.pci.device, 4));
  }
  if (node.pci.subsystem_vendor != 0 || node.pci.subsystem_device != 0) {
    set(pci, "subsystem_vendor", hex(node.pci.subsystem_vendor, 4));
    set(pci, "subsystem_device", hex(node.pci.subsystem_device, 4));
  }
  set(pci, "link_speed", speed(node.link.gtransfers_per_s));
  set(pci, "link_width", node.link.width);
  if (node.link.most_gtransfers_per_s > 0) set(pci, "max_link_speed", speed(node.link.most_gtransfers_per_s));
  if (node.link.most_width > 0) set(pci, "max_link_width", node.link.most_width);
  if (node.kind == TopologyKind::gpu) writeGpu(pci.append_child("gpu"), index);
  if (node.kind == TopologyKind::nic) writeNic(pci.append_child("nic"), index);
  for (const PeerSwitches& pair : host_.peer_switches) {
    if (pair.a != index && pair.b != index) continue;
    xml_node link = pci.append_child("pcilink");
    set(link, "target", at(pair.a == index ? pair.b : pair.a).bus_id);
  }
  if (node.kind == TopologyKind::pci_bridge) writeChildren(pci, index);
}

void Writer::writeGpu(xml_node gpu, int index) const {
  const GpuDetails& details = at(index).gpu;
  set(gpu, "dev", details.device);
  if (details.compute_capability != 0) set(gpu, "sm", details.compute_capability);
  set(gpu, "rank", details.rank);
  set(gpu, "gdr", details.reached_by_rdma ? 1 : 0);
  if (!details.model.empty()) set(gpu, "model", details.model);
  for (const NvLinks& links : host_.nvlinks) {
    if (links.from == index) writeLinks(gpu, links);
  }
}

/// A CPU as the end of NVLinks (POWER9) or of C2C is the GPU's own: nothing else can be written.
void Writer::writeLinks(xml_node gpu, const NvLinks& links) const {
  const TopologyNode& to = at(links.to);
  if (links.is_c2c && links.gbytes_per_s > 0) {
    xml_node c2c = gpu.append_child("c2c");
    set(c2c, "bw", mbytes(links.gbytes_per_s));
    set(c2c, "count", links.count);
    return;
  }
  xml_node link = gpu.append_child("nvlink");
  // An NVSwitch that cannot be seen has this bus id in NCCL's own files.
  set(link, "target", !to.bus_id.empty() ? to.bus_id : links.is_c2c ? "" : "fffffff:ffff:ff");
  set(link, "count", links.count);
  set(link, "tclass",
      links.is_c2c                        ? "0x068001"
      : to.kind == TopologyKind::nvswitch ? "0x068000"
                                          : hex(to.pci.device_class, 6));
  if (links.gbytes_per_s > 0) set(link, "bw", mbytes(links.gbytes_per_s));
}

void Writer::writeNic(xml_node nic, int index) const {
  for (const int port : children_[static_cast<std::size_t>(index)]) {
    const NetDetails& details = at(port).net;
    xml_node net = nic.append_child("net");
    if (!details.name.empty()) set(net, "name", details.name);
    set(net, "dev", details.device);
    if (details.mbits_per_s > 0) set(net, "speed", plain(details.mbits_per_s));
    set(net, "port", details.port);
    set(net, "latency", plain(details.latency_us));
    if (details.guid != 0) set(net, "guid", hex(details.guid, 1));
    set(net, "maxconn", details.most_connections);
    set(net, "gdr", details.reaches_gpus ? 1 : 0);
    set(net, "coll", details.reduces ? 1 : 0);
  }
}

}  // namespace

std::string writeNcclXml(const std::vector<Topology>& hosts) {
  pugi::xml_document document;
  xml_node system = document.append_child("system");
  system.append_attribute("version") = 1;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].all(TopologyKind::numa_node).empty()) {
      throw std::invalid_argument("a host without a NUMA node cannot be written as NCCL's XML");
    }
    Writer(hosts[i]).write(system, hosts.size() > 1 ? fmt::format("{:#x}", i + 1) : "");
  }
  std::ostringstream text;
  document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration, pugi::encoding_utf8);
  return text.str();
}

}  // namespace tutti
