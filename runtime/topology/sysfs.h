// What sysfs tells of this machine. Each function takes what is known so far, adds what is missing, fills in
// what is unknown (0, -1, empty), and notes in Topology::unseen what it could not see.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/topology.h"

namespace tutti {

/// Whether it tells NUMA nodes and their CPUs.
bool tellsCpus(const std::filesystem::path& system);

/// NUMA nodes with their CPUs, sockets and caches: at least one node. `cpuinfo` tells vendor and model.
void addCpus(Topology& topology, const std::filesystem::path& system, const std::filesystem::path& cpuinfo);

/// GPUs of NVIDIA, NVSwitches and network cards, by their PCI class, with the switches above them.
void addPciDevices(Topology& topology, const std::filesystem::path& system);

/// One device, with the switches above it. Where the system does not show it, it hangs at the NUMA node
/// `numa`, or at the first one. Returns its node, which may have been there before.
int addPciDevice(Topology& topology, const std::filesystem::path& system, const std::string& bus_id,
                 TopologyKind kind, int numa = -1);

/// Speed and width of the PCI links, and the identities, of the nodes that there are.
void fillPci(Topology& topology, const std::filesystem::path& system);

/// Ports that are up: of RDMA devices; where there are none, network interfaces: of cards, else virtual ones
/// as NCCL_SOCKET_IFNAME takes them by itself. `only_known`: only those of cards that are there.
void addPorts(Topology& topology, const std::filesystem::path& system, bool only_known);

}  // namespace tutti
