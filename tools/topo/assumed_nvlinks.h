// NVLinks that a file leaves out, as the command line gives them.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti::topo {

/// "all:12": every GPU has 12 NVLinks to one NVSwitch. "0-1:4,2-3:4": pairs of GPUs, by number, with so many
/// between them. Both may be mixed.
struct AssumedNvlinks {
  struct Pair {
    int a = 0;
    int b = 0;
    int count = 0;
  };
  int per_gpu_to_switch = 0;
  std::vector<Pair> pairs;
};

/// Throws std::invalid_argument saying what is wrong.
AssumedNvlinks parseAssumedNvlinks(const std::string& text);

/// Adds them. Throws std::invalid_argument where the host lists NVLinks already, has no such GPU, or no GPU.
void addNvlinks(Topology& topology, const AssumedNvlinks& assumed, const std::string& host);

}  // namespace tutti::topo
