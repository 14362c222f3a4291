// What this machine shows of itself: hwloc, sysfs, NVML, CUDA.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/topology.h"

namespace tutti {

struct DiscoveryOptions {
  std::filesystem::path system = "/sys";  ///< where sysfs is; tests have their own
  bool with_gpus = true;                  ///< ask CUDA and NVML
};

/// Never throws for what a machine hides: what could not be seen is in Topology::unseen.
Topology discoverTopology(const DiscoveryOptions& options = {});

}  // namespace tutti
