// What hangs at a NUMA node and matters: the way down to GPUs and NICs.
#pragma once

#include <vector>

#include "runtime/topology/paths.h"

namespace tutti::topo {

struct Hanging {
  int node = kNoNode;
  double gbytes_per_s = 0;  ///< of the link up, the narrowest where bridges are passed
  std::vector<int> passed;  ///< bridges with nothing else below, from above; only where these are folded
  std::vector<Hanging> children;
};

enum class Bridges { all, folded };

/// The children of `node`. Bridges that lead to neither GPU nor NIC are left out; `folded`: also those with
/// one child, which then names them.
std::vector<Hanging> hangingAt(const TopologyPaths& paths, int node, Bridges bridges);

/// The roots: NUMA nodes, and in files that name none what hangs at nothing. NVSwitches are no roots.
std::vector<int> rootsOf(const Topology& topology);

}  // namespace tutti::topo
