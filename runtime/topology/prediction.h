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
  std::string algorithm;  ///< "ring", "tree", "direct"
  std::string limit;      ///< "PCI link of GPU 3 (0000:3b:00.0), 12.0 GB/s, shared by 2 channels"
};

/// Of large messages, where latency does not count.
std::vector<PredictedBandwidth> predictBandwidths(const Cluster& cluster, const SearchResult& result);

}  // namespace tutti
