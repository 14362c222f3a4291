// From many times to the figures of the table.
#pragma once

#include <vector>

#include "bench/options.h"

namespace tutti::perf {

/// One time of all ranks' times, in the order of ranks. `times` is not empty.
double overRanks(Average average, const std::vector<double>& times);

/// Of the times of single iterations, in microseconds.
struct IterationStats {
  double min_us = 0;
  double max_us = 0;
  double mean_us = 0;
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double stdev_us = 0;           ///< of the population: divided by n
  double cv_percent = 0;         ///< 100 * stdev / mean
  std::vector<double> times_us;  ///< in the order measured
};

/// Percentile p of n values is the smallest value that at least p% of them do not exceed (nearest rank).
/// `times_us` is not empty.
IterationStats statsOf(std::vector<double> times_us);

/// S / t in GB/s, decimal; 0 for no time.
double gigabytesPerSecond(double bytes, double time_us);

}  // namespace tutti::perf
