// Small hosts for tests, built in code, as people have them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti::test {

inline constexpr PciLink kGen3x16{.gtransfers_per_s = 8, .width = 16};
inline constexpr PciLink kGen4x16{.gtransfers_per_s = 16, .width = 16};

/// Adds nodes; each function returns what later ones refer to. GPUs and ports are numbered in order. For
/// files to give back the same value, add depth first.
class HostBuilder {
 public:
  Topology topology;

  /// CPUs of one socket, `cpus` of them, numbered on.
  int numaNode(const std::string& vendor, int family, int model, int cpus = 16) {
    TopologyNode node{.kind = TopologyKind::numa_node};
    node.cpu.numa = node.cpu.package = numa_nodes_++;
    node.cpu.architecture = "x86_64";
    node.cpu.vendor = vendor;
    node.cpu.family = family;
    node.cpu.model = model;
    node.cpu.cpus.resize(static_cast<std::size_t>(cpus));
    std::iota(node.cpu.cpus.begin(), node.cpu.cpus.end(), next_cpu_);
    node.cpu.caches = {node.cpu.cpus};
    next_cpu_ += cpus;
    return add(std::move(node));
  }
  int bridge(int parent, const PciLink& link) {
    return add(device(TopologyKind::pci_bridge, parent, link, 0x060400, 0x10b5));
  }
  int gpu(int parent, const PciLink& link, int compute_capability) {
    TopologyNode node = device(TopologyKind::gpu, parent, link, 0x030200, 0x10de);
    node.gpu.device = gpus_++;
    node.gpu.compute_capability = compute_capability;
    node.gpu.reached_by_rdma = true;
    return add(std::move(node));
  }
  /// A card with one port; returns the port, whose parent the card is.
  int nic(int parent, const PciLink& link, double mbits_per_s, bool reaches_gpus = true) {
    const int card = add(device(TopologyKind::nic, parent, link, 0x020700, 0x15b3));
    TopologyNode port{.kind = TopologyKind::net, .parent = card};
    port.net.name = fmt::format("mlx5_{}", ports_);
    port.net.device = ports_++;
    port.net.port = 1;
    port.net.mbits_per_s = mbits_per_s;
    port.net.guid = 0x100 + static_cast<std::uint64_t>(port.net.device);
    port.net.reaches_gpus = reaches_gpus;
    return add(std::move(port));
  }
  int nvSwitch() { return add({.kind = TopologyKind::nvswitch}); }
  /// In both directions.
  void nvlinks(int a, int b, int count) {
    topology.nvlinks.push_back({.from = a, .to = b, .count = count});
    topology.nvlinks.push_back({.from = b, .to = a, .count = count});
  }

 private:
  TopologyNode device(TopologyKind kind, int parent, const PciLink& link, std::uint32_t device_class,
                      std::uint16_t vendor) {
    return {.kind = kind,
            .parent = parent,
            .bus_id = fmt::format("0000:{:02x}:00.0", ++buses_),
            .pci = {.device_class = device_class, .vendor = vendor},
            .link = link};
  }
  int add(TopologyNode node) {
    topology.nodes.push_back(std::move(node));
    return static_cast<int>(topology.nodes.size()) - 1;
  }

  int numa_nodes_ = 0;
  int next_cpu_ = 0;
  int buses_ = 0;
  int gpus_ = 0;
  int ports_ = 0;
};

/// As DGX A100: two AMD sockets, each with two PCI switches (Gen 4), each with two GPUs and two NICs of
/// 200 Gbit/s; all GPUs with 12 NVLinks at the NVSwitch. GPU g and NIC g share a switch.
inline Topology dgxLike() {
  HostBuilder host;
  std::vector<int> gpus;
  for (int socket = 0; socket < 2; ++socket) {
    const int numa = host.numaNode("AuthenticAMD", 23, 49);
    for (int i = 0; i < 2; ++i) {
      const int bridge = host.bridge(numa, kGen4x16);
      for (int j = 0; j < 2; ++j) gpus.push_back(host.gpu(bridge, kGen4x16, 80));
      for (int j = 0; j < 2; ++j) host.nic(bridge, kGen4x16, 200000);
    }
  }
  const int nvswitch = host.nvSwitch();
  for (const int gpu : gpus) host.nvlinks(gpu, nvswitch, 12);
  return std::move(host.topology);
}

/// One AMD socket, four GPUs (compute capability 8.0) at its own root ports (Gen 4), four NVLinks between
/// every two, a NIC of 200 Gbit/s at another root port.
inline Topology nvlinkMesh4() {
  HostBuilder host;
  const int numa = host.numaNode("AuthenticAMD", 25, 1, 32);
  std::vector<int> gpus;
  gpus.reserve(4);
  for (int i = 0; i < 4; ++i) gpus.push_back(host.gpu(numa, kGen4x16, 80));
  host.nic(numa, kGen4x16, 200000);
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = a + 1; b < 4; ++b) host.nvlinks(gpus[a], gpus[b], 4);
  }
  return std::move(host.topology);
}

/// As DGX-1 with V100: two Intel sockets (Broadwell), each with two PCI switches (Gen 3) of two GPUs and a
/// NIC of 100 Gbit/s; six NVLinks per GPU as a hybrid cube mesh.
inline Topology cubeMesh8() {
  HostBuilder host;
  std::vector<int> gpus;
  for (int socket = 0; socket < 2; ++socket) {
    const int numa = host.numaNode("GenuineIntel", 6, 79, 20);
    for (int i = 0; i < 2; ++i) {
      const int bridge = host.bridge(numa, kGen3x16);
      for (int j = 0; j < 2; ++j) gpus.push_back(host.gpu(bridge, kGen3x16, 70));
      host.nic(bridge, kGen3x16, 100000);
    }
  }
  constexpr struct {
    std::size_t a, b;
    int count;
  } kLinks[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 2}, {4, 5, 1}, {4, 6, 1},
                {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}, {0, 4, 2}, {1, 5, 2}, {2, 6, 1}, {3, 7, 1}};
  for (const auto& link : kLinks) host.nvlinks(gpus[link.a], gpus[link.b], link.count);
  return std::move(host.topology);
}

/// Two Intel sockets (Skylake), no NVLink: GPUs 0 and 1 and a NIC of 100 Gbit/s behind a PCI switch of the
/// first, GPUs 2 and 3 at root ports of the second; all Gen 3.
inline Topology pcieOnly4() {
  HostBuilder host;
  const int first = host.numaNode("GenuineIntel", 6, 85);
  const int bridge = host.bridge(first, kGen3x16);
  host.gpu(bridge, kGen3x16, 75);
  host.gpu(bridge, kGen3x16, 75);
  host.nic(bridge, kGen3x16, 100000);
  const int second = host.numaNode("GenuineIntel", 6, 85);
  host.gpu(second, kGen3x16, 75);
  host.gpu(second, kGen3x16, 75);
  return std::move(host.topology);
}

/// One socket and an Ethernet card of 1 Gbit/s; no GPU.
inline Topology laptop() {
  HostBuilder host;
  const int numa = host.numaNode("GenuineIntel", 6, 140, 8);
  const int port = host.nic(numa, {.gtransfers_per_s = 2.5, .width = 1}, 1000, false);
  TopologyNode& card = host.topology.nodes[static_cast<std::size_t>(port) - 1];
  card.pci = {.device_class = 0x020000, .vendor = 0x8086};
  host.topology.nodes[static_cast<std::size_t>(port)].net = {
      .name = "enp0s31f6", .device = 0, .mbits_per_s = 1000};
  return std::move(host.topology);
}

}  // namespace tutti::test
