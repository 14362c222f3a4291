// GPUs and their NVLinks, as NVML and CUDA tell of them.
#pragma once

#include "runtime/topology/discovery.h"

namespace tutti {

/// Completes the GPUs that are known by PCI, and adds others unless `only_known`. NVLinks are added where
/// none are known yet. Notes in Topology::unseen what could not be asked.
void addGpus(Topology& topology, const DiscoveryOptions& options, bool only_known);

}  // namespace tutti
