// What a cluster's collectives will reach, by its links alone, and which of them limits.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/types.h"
#include "runtime/topology/search.h"

namespace tutti {

struct PredictedBandwidth {
  Collective collective;
  double bus_gbytes_per_s = 0;  ///< as the *_perf programs define it
  double algorithm_gbytes_per_s = 0;
  std::string algorithm;  ///< "direct", "hierarchical", "ring"; "tree" is not predicted: no program is one
  std::string limit;      ///< "PCI link of GPU 3 (0000:3b:00.0), 12.0 GB/s, shared by 2 channels"
};

/// Of ranks in host memory, whose own cores move every byte. Bytes that one rank reads and writes per second
/// while every rank of its host is at it, as measured on this machine; 0: not measured, so no limit.
struct HostMemoryCosts {
  double combine_gbytes_per_s = 0;  ///< in `combine` of user memory: as many sources as ranks
  double copy_gbytes_per_s = 0;     ///< between user memory and slots
  bool lends = false;               ///< user memory goes by reference, not through slots
};

/// Of large messages, where latency does not count, by the programs that the planner picks for them:
/// "direct" inside a host, between hosts "hierarchical" or "ring".
std::vector<PredictedBandwidth> predictBandwidths(const Cluster& cluster, const SearchResult& result,
                                                  const HostMemoryCosts& costs = {});

}  // namespace tutti
