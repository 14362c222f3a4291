#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tutti::perf {
namespace {

double meanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentile(const std::vector<double>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

double overRanks(Average average, const std::vector<double>& times) {
  switch (average) {
    case Average::kRank0:
      return times.front();
    case Average::kMin:
      return *std::min_element(times.begin(), times.end());
    case Average::kMax:
      return *std::max_element(times.begin(), times.end());
    case Average::kMean:
      break;
  }
  return meanOf(times);
}

IterationStats statsOf(std::vector<double> times_us) {
  std::vector<double> sorted = times_us;
  std::sort(sorted.begin(), sorted.end());
  IterationStats stats;
  stats.min_us = sorted.front();
  stats.max_us = sorted.back();
  stats.mean_us = meanOf(sorted);
  stats.p50_us = percentile(sorted, 50);
  stats.p95_us = percentile(sorted, 95);
  stats.p99_us = percentile(sorted, 99);
  double squares = 0;
  for (const double time : sorted) squares += (time - stats.mean_us) * (time - stats.mean_us);
  stats.stdev_us = std::sqrt(squares / static_cast<double>(sorted.size()));
  stats.cv_percent = stats.mean_us > 0 ? 100 * stats.stdev_us / stats.mean_us : 0;
  stats.times_us = std::move(times_us);
  return stats;
}

double gigabytesPerSecond(double bytes, double time_us) { return time_us > 0 ? bytes / time_us / 1e3 : 0; }

}  // namespace tutti::perf
