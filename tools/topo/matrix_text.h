// How every GPU and NIC reaches every other.
#pragma once

#include <string>
#include <vector>

#include "tools/topo/machine.h"

namespace tutti::topo {

/// GPUs, then the ports of NICs (or NICs without any). On hosts without GPUs: NUMA nodes, then those.
std::vector<int> endpointsOf(const Topology& topology);
/// "NV12" for NVLinks, else the path's class ("PXB"); "X" for itself.
std::string connectionWords(const TopologyPaths& paths, int from, int to);

/// Two tables per shape: classes, and bandwidth of the narrowest link; then what the classes mean.
std::string matrixText(const Machine& machine);

}  // namespace tutti::topo
