// How to get from one node of a host to another: the best path, its class and its bandwidth.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/path_class.h"
#include "runtime/core/topology.h"

namespace tutti {

/// One direction of a connection between two nodes. Two directions are two edges: full duplex.
struct Edge {
  enum class Kind : std::uint8_t { pci, nvlink, c2c, socket, net };
  int from = kNoNode;
  int to = kNoNode;
  Kind kind = Kind::pci;
  double gbytes_per_s = 0;
};

struct Path {
  PathClass path_class = PathClass::dis;
  double gbytes_per_s = 0;  ///< of the narrowest edge, with `pci_load`
  std::vector<int> edges;   ///< indices into TopologyPaths::edges, in the order they are passed
  /// What a byte takes of each PCI edge. Intel's CPUs pass data between devices on in small packets: 1.2.
  double pci_load = 1;
};

/// Paths between all of a host's nodes. Among paths the better class wins, then the wider, then the shorter,
/// then the one whose nodes come first by name: a function of the topology alone, however it was listed.
///
/// CPUs and PCI switches pass on everything, NVSwitches NVLink. A GPU passes on nothing but, between two GPUs
/// that it has NVLinks to, NVLink (NVB). A NIC and its port are one place. No path is PXN: nothing in Tutti
/// has a GPU send for another.
class TopologyPaths {
 public:
  /// `topology` must be valid and outlive this.
  explicit TopologyPaths(const Topology& topology);

  const Topology& topology() const { return *topology_; }
  const std::vector<Edge>& edges() const { return edges_; }
  /// Those from one node are found when first asked for: not for several threads at a time.
  const Path& between(int from, int to) const;

 private:
  const Topology* topology_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> leaving_;         ///< by node: its edges, by where they lead
  mutable std::vector<std::vector<Path>> paths_;  ///< by source, then target
};

}  // namespace tutti
