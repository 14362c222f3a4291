// GPUs and their NVLinks, as NVML and CUDA tell of them.
#pragma once

#include "runtime/topology/discovery.h"

namespace tutti {

/// Of a GPU that the system does not show: a 3D controller.
inline constexpr std::uint32_t kGpuClass = 0x030200;

/// Completes the GPUs that are known by PCI, and adds others unless `only_known`. NVLinks are added where
/// none are known yet. Notes in Topology::unseen what could not be asked.
void addGpus(Topology& topology, const DiscoveryOptions& options, bool only_known);

}  // namespace tutti
