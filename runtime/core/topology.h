// What a host is made of, as far as it matters to who sends how: a graph of CPUs, PCI, GPUs and NICs. A
// value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

enum class TopologyKind : std::uint8_t {
  numa_node,   ///< CPUs with their memory, and the root of what hangs at them
  pci_bridge,  ///< a PCI switch, or a bridge on the way
  gpu,
  nvswitch,
  nic,  ///< a network card, by PCI or without a place
  net,  ///< a port of a card: what data leaves by
};
std::string_view name(TopologyKind kind);

inline constexpr int kNoNode = -1;

/// A PCI link from a device towards the root. 0: unknown.
struct PciLink {
  double gtransfers_per_s = 0;       ///< per lane, as trained
  int width = 0;                     ///< lanes, as trained
  double most_gtransfers_per_s = 0;  ///< what device and slot could do
  int most_width = 0;

  friend bool operator==(const PciLink&, const PciLink&) = default;
};

struct PciIdentity {
  std::uint32_t device_class = 0;  ///< 0x030200: a GPU
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystem_vendor = 0;
  std::uint16_t subsystem_device = 0;

  friend bool operator==(const PciIdentity&, const PciIdentity&) = default;
};

struct CpuDetails {
  int numa = 0;                               ///< the system's number of the node
  int package = -1;                           ///< socket; -1: unknown
  std::vector<int> cpus = {};                 ///< the system's numbers, ascending
  std::vector<std::vector<int>> caches = {};  ///< of those, which share a last-level cache; empty: unknown
  std::string architecture = {};              ///< "x86_64", "arm64", "ppc64"
  std::string vendor = {};                    ///< "AuthenticAMD"
  int family = 0;
  int model = 0;

  friend bool operator==(const CpuDetails&, const CpuDetails&) = default;
};

struct GpuDetails {
  int device = -1;               ///< CUDA's number; -1: unknown
  int compute_capability = 0;    ///< 80 for 8.0; 0: unknown
  int rank = -1;                 ///< who uses it; -1: nobody
  bool reached_by_rdma = false;  ///< GPUDirect RDMA
  std::string model = {};

  friend bool operator==(const GpuDetails&, const GpuDetails&) = default;
};

struct NetDetails {
  std::string name = {};   ///< "mlx5_0", "eth0"
  int device = -1;         ///< number among the ports of the host
  int port = 0;            ///< of an RDMA device, from 1; 0: a network interface
  double mbits_per_s = 0;  ///< 0: unknown
  double latency_us = 0;
  std::uint64_t guid = 0;
  int most_connections = 65536;
  bool reaches_gpus = false;  ///< GPUDirect RDMA
  bool reduces = false;       ///< in-network reductions

  friend bool operator==(const NetDetails&, const NetDetails&) = default;
};

struct TopologyNode {
  TopologyKind kind = TopologyKind::pci_bridge;
  int parent = kNoNode;  ///< what it hangs at; a NUMA node hangs at nothing, nor does an NVSwitch without PCI
  bool is_guessed = false;  ///< nobody told the NUMA node that it, with what is below it, hangs at
  std::string bus_id = {};  ///< "0000:3b:00.0", lower case; empty: not by PCI
  PciIdentity pci = {};
  PciLink link = {};    ///< to the parent
  CpuDetails cpu = {};  ///< of a numa_node
  GpuDetails gpu = {};  ///< of a gpu
  NetDetails net = {};  ///< of a net

  friend bool operator==(const TopologyNode&, const TopologyNode&) = default;
};

/// NVLinks from a GPU to a GPU, an NVSwitch or (C2C) a CPU: one direction; both are listed.
struct NvLinks {
  int from = kNoNode;
  int to = kNoNode;
  int count = 1;
  double gbytes_per_s = 0;  ///< each, one direction; 0: as the GPU's compute capability has it
  bool is_c2c = false;

  friend bool operator==(const NvLinks&, const NvLinks&) = default;
};

/// Two PCI switches with a link between them that is not the way to the root.
struct PeerSwitches {
  int a = kNoNode;
  int b = kNoNode;

  friend bool operator==(const PeerSwitches&, const PeerSwitches&) = default;
};

/// One host. Parents come before children; indices into `nodes` are how everything refers to them.
struct Topology {
  std::vector<TopologyNode> nodes;
  std::vector<NvLinks> nvlinks;
  std::vector<PeerSwitches> peer_switches;
  std::vector<std::string> unseen;  ///< in words: what could not be seen, and why

  /// In their order.
  std::vector<int> all(TopologyKind kind) const;
  /// kNoNode: no such.
  int find(std::string_view bus_id) const;
  /// The NUMA node that a node hangs at, or kNoNode.
  int numaOf(int node) const;
  /// Somebody told numaOf(node): it is no guess.
  bool isNumaTold(int node) const;
  /// By node, its place among all when they are ordered by what they are called on the host: NUMA node, bus
  /// id, port. What is chosen by it does not depend on the order in which somebody listed them.
  std::vector<int> orderByName() const;
  /// "GPU 3 (0000:3b:00.0)", "NUMA node 1", "mlx5_0:1".
  std::string label(int node) const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Without what two hosts of one make differ in: GUIDs of ports, and which rank uses a GPU.
Topology withoutIdentity(Topology topology);

/// Throws std::invalid_argument saying what is wrong: a parent that comes later or is of a kind that holds no
/// such child, two nodes with one bus id, NVLinks of nothing, two NUMA nodes with one number.
void validate(const Topology& topology);

}  // namespace tutti
