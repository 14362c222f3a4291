// Which of a host's RDMA ports a rank uses first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "transports/rdma.h"
#include "transports/verbs/device.h"
#include "transports/verbs/distance.h"

namespace tutti {

/// Who wants to use ports.
struct RankPlace {
  HostPlace place;
  std::string name;    ///< "GPU 0000:3b:00.0", "the CPUs of NUMA node 0"
  int local_rank = 0;  ///< among the ranks of its host
};

/// By the rank's GPU, if it has one that the system shows, else by the CPUs that this process may run on.
/// `gpu`: its PCI bus id, or "". `system`: /sys.
RankPlace placeOfRank(const std::string& gpu, int local_rank, const std::filesystem::path& system);

struct PortOrder {
  std::size_t nearest = 0;                ///< so many of the first are equally near
  PathClass path_class = PathClass::sys;  ///< to those
  std::string text;                       ///< for the log: which, and why
};
/// Puts the nearest first. Those equally near stay in order, but each local rank begins with another. How
/// near they are the system shows, at `rank`'s place, unless `places` (of NCCL_TOPO_FILE) say it.
PortOrder orderPorts(std::vector<VerbsPort>& ports, const RankPlace& rank,
                     const std::vector<RdmaPlace>& places = {});

/// The place of a port by its name, else by its card; nullptr: unknown.
const RdmaPlace* knownPlace(const VerbsPort& port, const std::vector<RdmaPlace>& places);

}  // namespace tutti
