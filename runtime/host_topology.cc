#include "runtime/host_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "runtime/core/hca_rule.h"
#include "runtime/core/system_files.h"
#include "runtime/topology/discovery.h"
#include "runtime/topology/hwloc_xml.h"
#include "runtime/topology/nccl_xml.h"
#include "runtime/topology/notation.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// What virtual machines of clouds have, whose PCI tree is not that of the machine below.
constexpr const char* kOfVirtualMachines = "/var/run/nvidia-topologyd/virtualTopology.xml";

/// CPUs of this machine; empty: it does not tell.
std::vector<int> presentCpus() { return numbersOfList(firstLine("/sys/devices/system/cpu/present")); }

void warnOfForeignCpus(const std::string& path, const Topology& topology, Log& log) {
  const std::vector<int> present = presentCpus();
  if (present.empty()) return;
  std::vector<int> foreign;
  for (const TopologyNode& node : topology.nodes) {
    std::ranges::copy_if(node.cpu.cpus, std::back_inserter(foreign),
                         [&](int cpu) { return !std::ranges::binary_search(present, cpu); });
  }
  if (foreign.empty()) return;
  std::ranges::sort(foreign);
  log.warnOnce(-1,
               fmt::format("{} tells of CPUs {}, and this machine has {} only: the file is that of another "
                           "machine, and what is decided by it may not suit this one",
                           path, listOfCpus(foreign), listOfCpus(present)));
}

Topology readFile(const std::string& path, Log& log) {
  TopologyFile file = readTopologyFile(path);
  for (const std::string& remark : file.remarks)
    log.write(LogLevel::info, -1, fmt::format("{}: {}", path, remark), LogSubsystem::graph);
  if (file.hosts.size() > 1) {
    log.write(LogLevel::warn, -1,
              fmt::format("{} tells of {} hosts; this one is taken for the first", path, file.hosts.size()));
  }
  warnOfForeignCpus(path, file.hosts.front(), log);
  return std::move(file.hosts.front());
}

std::optional<Topology> ofFile(const TopologyFiles& files, Log& log) {
  if (!files.file.empty()) {
    try {
      return readFile(files.file, log);
    } catch (const std::exception& wrong) {
      throw Error(
          ncclInvalidUsage,
          fmt::format("NCCL_TOPO_FILE: {}. Correct it, or unset NCCL_TOPO_FILE, and what this machine "
                      "shows of itself is used",
                      wrong.what()));
    }
  }
  if (!isTopologyFromFile(files)) return std::nullopt;
  try {
    return readFile(kOfVirtualMachines, log);
  } catch (const std::exception& wrong) {
    log.write(LogLevel::warn, -1, fmt::format("{}; what this machine shows of itself is used", wrong.what()));
    return std::nullopt;
  }
}

/// A machine that contradicts itself must not keep anybody from working: then its NUMA nodes are all that is
/// known.
Topology soundPartOf(Topology found) {
  try {
    readNcclXml(writeNcclXml({found}), "what was found");
    return found;
  } catch (const std::exception& error) {
    Topology sound{.nodes = {}, .nvlinks = {}, .peer_switches = {}, .unseen = std::move(found.unseen)};
    sound.unseen.push_back(fmt::format("all but the CPUs, because {}", error.what()));
    for (TopologyNode& node : found.nodes) {
      if (node.kind != TopologyKind::numa_node) continue;
      node.cpu.caches.clear();
      sound.nodes.push_back(std::move(node));
    }
    return sound;
  }
}

}  // namespace

bool isTopologyFromFile(const TopologyFiles& files) {
  std::error_code error;
  return !files.file.empty() || std::filesystem::exists(kOfVirtualMachines, error);
}

Topology withoutPorts(const Topology& topology, const std::string& hca) {
  const HcaRule rule(hca);
  Topology kept{.nodes = {}, .nvlinks = {}, .peer_switches = {}, .unseen = topology.unseen};
  std::vector<int> place(topology.nodes.size(), kNoNode);
  const auto placeOf = [&place](int node) {
    return node == kNoNode ? kNoNode : place[static_cast<std::size_t>(node)];
  };
  const auto isLeftOut = [&rule](const TopologyNode& node) {
    return node.kind == TopologyKind::net && node.net.port > 0 && !rule.allows(node.net.name, node.net.port);
  };
  // A card goes with the last of its ports.
  std::vector<int> ports(topology.nodes.size(), 0);
  std::vector<int> left_out(topology.nodes.size(), 0);
  for (const TopologyNode& node : topology.nodes) {
    if (node.kind != TopologyKind::net) continue;
    ++ports[static_cast<std::size_t>(node.parent)];
    left_out[static_cast<std::size_t>(node.parent)] += isLeftOut(node) ? 1 : 0;
  }
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    TopologyNode node = topology.nodes[i];
    if (isLeftOut(node) || (ports[i] > 0 && ports[i] == left_out[i])) continue;
    node.parent = placeOf(node.parent);
    place[i] = static_cast<int>(kept.nodes.size());
    kept.nodes.push_back(std::move(node));
  }
  for (NvLinks links : topology.nvlinks) {
    links.from = placeOf(links.from);
    links.to = placeOf(links.to);
    kept.nvlinks.push_back(links);
  }
  for (const PeerSwitches& pair : topology.peer_switches)
    kept.peer_switches.push_back({placeOf(pair.a), placeOf(pair.b)});
  return kept;
}

Topology HostTopology::get(const TopologyFiles& files, bool with_gpus, Log& log) {
  const std::scoped_lock lock(mutex_);
  std::optional<Topology>& known = known_[with_gpus ? 1 : 0];
  if (known) return *known;
  const DiscoveryOptions options{.hwloc = HwlocUse::where_sysfs_lacks, .with_gpus = with_gpus};
  std::optional<Topology> file = ofFile(files, log);
  known = file ? completeTopology(std::move(*file), options) : soundPartOf(discoverTopology(options));
  for (const std::string& unseen : known->unseen)
    log.write(LogLevel::info, -1, "not seen of this host: " + unseen, LogSubsystem::graph);
  return *known;
}

}  // namespace tutti
