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
