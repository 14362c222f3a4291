// How every GPU and NIC reaches every other.
#pragma once

#include <string>
#include <vector>

#include "tools/topo/machine.h"

namespace tutti::topo {

/// GPUs, then the ports of NICs (or NICs without any). On hosts without GPUs: NUMA nodes, then those.
std::vector<int> endpointsOf(const Topology& topology);

/// Two tables per shape: classes ("NV12" for NVLinks, else as "PXB"; "X" for itself), and bandwidth of the
/// narrowest link; then what the classes mean.
std::string matrixText(const Machine& machine);

}  // namespace tutti::topo
