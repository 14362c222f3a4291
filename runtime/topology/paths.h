// How to get from one node of a host to another: the best path, its class and its bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti {

/// The worst thing that a path passes, best first; the names are NCCL's.
enum class PathClass : std::uint8_t {
  loc,  ///< itself
  nvl,  ///< NVLinks, also through NVSwitches
  nvb,  ///< NVLinks through another GPU
  c2c,  ///< a CPU that hangs at the GPU by a coherent link
  pix,  ///< one PCI switch
  pxb,  ///< several PCI switches, but no CPU
  p2c,  ///< to a NIC by way of a C2C-attached CPU
  pxn,  ///< to a NIC through a peer GPU by NVLink
  phb,  ///< through a CPU
  sys,  ///< from socket to socket
  net,  ///< between hosts
  dis,  ///< no path
};
std::string_view name(PathClass path_class);  ///< "NVL"
/// By name ("PXB", any case) or NCCL's number (0 to 5: LOC NVL PIX PXB PHB SYS). nullopt: neither.
std::optional<PathClass> pathClassOf(std::string_view text);

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
  double gbytes_per_s = 0;  ///< of the narrowest edge
  std::vector<int> edges;   ///< indices into TopologyPaths::edges, in the order they are passed
};

/// Paths between all of a host's nodes. Among paths the better class wins, then the wider, then the shorter,
/// then the one whose nodes come first: a function of the topology alone.
class TopologyPaths {
 public:
  /// `topology` must outlive this.
  explicit TopologyPaths(const Topology& topology);

  const Topology& topology() const { return *topology_; }
  const std::vector<Edge>& edges() const { return edges_; }
  const Path& between(int from, int to) const;

 private:
  const Topology* topology_;
  std::vector<Edge> edges_;
  std::vector<Path> paths_;  ///< from * nodes + to
};

}  // namespace tutti
