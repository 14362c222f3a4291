#include "runtime/topology/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>

#include "runtime/core/system_files.h"
#include "runtime/topology/gpus.h"
#include "runtime/topology/hwloc.h"
#include "runtime/topology/hwloc_xml.h"
#include "runtime/topology/sysfs.h"
#include "runtime/topology/topology_builder.h"

namespace tutti {
namespace {

/// The nodes for which `keeps` holds. A node that is kept hangs at one that is kept.
Topology selected(const Topology& topology, const std::function<bool(int)>& keeps) {
  Topology result{.nodes = {}, .nvlinks = {}, .peer_switches = {}, .unseen = topology.unseen};
  std::vector<int> places(topology.nodes.size(), kNoNode);
  const auto place = [&places](int node) {
    return node == kNoNode ? kNoNode : places[static_cast<std::size_t>(node)];
  };
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    if (!keeps(static_cast<int>(i))) continue;
    places[i] = static_cast<int>(result.nodes.size());
    result.nodes.push_back(topology.nodes[i]);
    result.nodes.back().parent = place(topology.nodes[i].parent);
  }
  for (NvLinks links : topology.nvlinks) {
    links.from = place(links.from);
    links.to = place(links.to);
    if (links.from != kNoNode && links.to != kNoNode) result.nvlinks.push_back(links);
  }
  for (const PeerSwitches& pair : topology.peer_switches) {
    if (place(pair.a) != kNoNode && place(pair.b) != kNoNode)
      result.peer_switches.push_back({place(pair.a), place(pair.b)});
  }
  return result;
}

/// Without switches and cards that lead to no GPU and no port.
Topology trimmed(const Topology& topology) {
  std::vector<bool> matters(topology.nodes.size());
  for (std::size_t i = topology.nodes.size(); i-- > 0;) {
    const TopologyNode& node = topology.nodes[i];
    const bool leads = node.kind == TopologyKind::pci_bridge || node.kind == TopologyKind::nic;
    matters[i] = matters[i] || !leads;
    if (matters[i] && node.parent != kNoNode) matters[static_cast<std::size_t>(node.parent)] = true;
  }
  return selected(topology, [&matters](int node) { return matters[static_cast<std::size_t>(node)]; });
}

/// Without the ports of cards that the system tells of, and of cards without a place: addPorts knows them
/// better.
Topology withoutPorts(const Topology& topology) {
  return selected(topology, [&topology](int node) {
    const TopologyNode& it = topology.nodes[static_cast<std::size_t>(node)];
    const bool is_virtual = it.kind == TopologyKind::nic && it.bus_id.empty();
    return it.kind != TopologyKind::net && !is_virtual;
  });
}

/// CPUs and the PCI tree.
Topology seen(const DiscoveryOptions& options) {
  std::string problem;
  const bool asks = options.hwloc == HwlocUse::first ||
                    (options.hwloc == HwlocUse::where_sysfs_lacks && !tellsCpus(options.system));
  if (asks) {
    try {
      const HwlocView view = askHwloc();
      problem = view.problem;
      if (problem.empty()) return withoutPorts(readHwlocXml(view.xml, "hwloc").hosts.front());
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  Topology topology;
  addCpus(topology, options.system, options.processes / "cpuinfo");
  if (!problem.empty())
    topology.unseen.push_back(fmt::format("what hwloc tells: {}; sysfs is asked instead", problem));
  return topology;
}

void number(Topology& topology) {
  for (TopologyNode& node : topology.nodes) {
    if (node.gpu.device < 0) node.gpu.device = kUnnumbered;
    if (node.net.device < 0) node.net.device = kUnnumbered;
  }
  TopologyBuilder builder;
  builder.topology = std::move(topology);
  builder.complete();
  topology = std::move(builder.topology);
}

/// NVIDIA's open driver hands GPU memory to RDMA devices as dma-buf, also without nvidia-peermem.
void noteDmaBuf(Topology& topology, const DiscoveryOptions& options) {
  const std::string driver = firstLine(options.processes / "driver/nvidia/version");
  if (driver.find("Open Kernel Module") == std::string::npos) return;
  for (TopologyNode& node : topology.nodes) {
    if (node.kind == TopologyKind::net && node.net.port > 0) node.net.reaches_gpus = true;
  }
}

void complete(Topology& topology, const DiscoveryOptions& options, bool only_known) {
  addPorts(topology, options.system, only_known);
  noteDmaBuf(topology, options);
  if (options.with_gpus) addGpus(topology, options, only_known);
  fillPci(topology, options.system);
  topology = trimmed(topology);
  number(topology);
}

}  // namespace

Topology discoverTopology(const DiscoveryOptions& options) {
  Topology topology = seen(options);
  addPciDevices(topology, options.system);
  complete(topology, options, false);
  return topology;
}

Topology completeTopology(Topology topology, const DiscoveryOptions& options) {
  complete(topology, options, true);
  return topology;
}

void addGpu(Topology& topology, const std::string& bus_id, const DiscoveryOptions& options) {
  if (topology.find(bus_id) != kNoNode) return;
  const int node = addPciDevice(topology, options.system, bus_id, TopologyKind::gpu);
  topology.nodes[static_cast<std::size_t>(node)].pci.device_class = kGpuClass;
  fillPci(topology, options.system);
  number(topology);
}

}  // namespace tutti
