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

/// Whether a file says what this host is made of.
bool isTopologyFromFile(const TopologyFiles& files);

/// Without the RDMA ports that NCCL_IB_HCA leaves out: rings must not count on them. Throws Error for a rule
/// that is none.
Topology withoutPorts(const Topology& topology, const std::string& hca);

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
