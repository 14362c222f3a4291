// Which of the cores that this process may use each rank gets.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/settings.h"

namespace tutti::run {

/// What a rank is bound to.
enum class BindTo {
  core,   ///< one of its own, as far as there are enough
  cache,  ///< those that share a last-level cache
  numa,   ///< those of a NUMA node
  none,   ///< all that there are
};

/// Where nobody says it. Ranks in host memory stay at the NUMA node where their memory is; ranks on GPUs are
/// left where they are: which GPU a rank will take, and so which node is near, is not known here.
BindTo bindByDefault(DeviceChoice device, bool has_gpus);

/// For each rank the CPUs that it is bound to. Ranks that follow each other share caches and NUMA nodes as
/// far as they go: cores are taken cache by cache, the second threads of cores after all first ones; larger
/// parts are divided into blocks of ranks. What the system does not tell counts as one part. `cpus`: not
/// empty. `system`: /sys/devices/system.
std::vector<std::vector<int>> coresOfRanks(BindTo to, int ranks, const std::vector<int>& cpus,
                                           const std::filesystem::path& system = "/sys/devices/system");

}  // namespace tutti::run
