// What this machine shows of itself: hwloc, sysfs, NVML, CUDA.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/core/topology.h"

namespace tutti {

/// Where CPUs and the PCI tree are asked of hwloc before sysfs.
enum class HwlocUse : std::uint8_t {
  first,
  where_sysfs_lacks,  ///< where /sys tells no CPUs: hwloc takes some 25 ms, sysfs less than one
  never,
};

struct DiscoveryOptions {
  std::filesystem::path system = "/sys";      ///< where sysfs is; tests have their own
  std::filesystem::path processes = "/proc";  ///< the same
  HwlocUse hwloc = HwlocUse::first;
  bool with_gpus = true;                   ///< ask CUDA and NVML
  std::string nvml = "libnvidia-ml.so.1";  ///< by which name NVML is opened
};

/// Never throws for what a machine hides: what could not be seen is in Topology::unseen.
Topology discoverTopology(const DiscoveryOptions& options = {});

/// What a file told of this machine (NCCL_TOPO_FILE), with what files leave out: the ports of its cards, and
/// of its GPUs compute capability, CUDA's numbers and NVLinks. Adds no devices.
Topology completeTopology(Topology topology, const DiscoveryOptions& options = {});

/// A GPU of this machine that `topology` may lack, as where another process has it and neither NVML nor PCI
/// tell of it.
void addGpu(Topology& topology, const std::string& bus_id, const DiscoveryOptions& options = {});

}  // namespace tutti
