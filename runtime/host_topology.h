// What this process knows of the host that it is on.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/core/settings.h"
#include "runtime/core/topology.h"
#include "runtime/log.h"

namespace tutti {

/// Looked at once, when it is first asked for. Thread-safe.
class HostTopology {
 public:
  /// Of NCCL_TOPO_FILE, or that of virtual machines, where there is one; else what this machine shows.
  /// `with_gpus`: CUDA and NVML are asked, too. Throws Error(ncclInvalidUsage) for a file that was named and
  /// cannot be used.
  Topology get(const TopologyFiles& files, bool with_gpus, Log& log);

 private:
  std::mutex mutex_;
  std::optional<Topology> known_[2];  ///< without and with GPUs
};

}  // namespace tutti
