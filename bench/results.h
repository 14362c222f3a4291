// What a run yields: values that the reports print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/statistics.h"

namespace tutti::perf {

/// One row's out-of-place or in-place half.
struct Measurement {
  double time_us = 0;
  double alg_gbps = 0;
  double bus_gbps = 0;
  std::optional<std::uint64_t> wrong;  ///< over all ranks; empty when nothing was checked
  std::optional<IterationStats> iterations;
};

struct Row {
  std::size_t bytes = 0;  ///< the larger of what a rank sends and receives
  std::size_t count = 0;  ///< the count argument of the call
  std::string type;
  std::string op;  ///< "none" where there is no reduction
  int root = -1;   ///< -1 where there is no root
  Measurement out_of_place;
  Measurement in_place;
};

/// Of the whole run. The same on every rank.
struct Totals {
  std::uint64_t wrong = 0;
  double bus_gbps_sum = 0;
  std::uint64_t measurements = 0;

  void add(const Row& row) {
    for (const Measurement* half : {&row.out_of_place, &row.in_place}) {
      wrong += half->wrong.value_or(0);
      bus_gbps_sum += half->bus_gbps;
      ++measurements;
    }
  }
  double averageBusGbps() const {
    return measurements == 0 ? 0 : bus_gbps_sum / static_cast<double>(measurements);
  }
  /// nccl-tests' rule for NCCL_TESTS_MIN_BW: a tenth below is still good.
  bool reaches(double min_gbps) const { return averageBusGbps() >= 0.9 * min_gbps; }
};

/// Who takes part, one per rank.
struct RankInfo {
  int group = 0;  ///< of NCCL_TESTS_SPLIT
  int pid = 0;
  std::string host;
  int device = 0;           ///< number of the GPU in its process
  std::string place;        ///< the GPU's PCI address; empty for host memory
  std::string device_name;  ///< the GPU's, or the processor's
  std::uint64_t free_bytes = 0;
};

}  // namespace tutti::perf
