#include "tools/train/division.h"

#include <numeric>

namespace tutti::train {

std::vector<std::size_t> evenCounts(std::size_t batch, std::size_t nranks) {
  return std::vector<std::size_t>(nranks, batch / nranks);
}

std::vector<std::size_t> unevenCounts(std::size_t nranks) {
  std::vector<std::size_t> counts(nranks);
  for (std::size_t rank = 0; rank < nranks; ++rank) counts[rank] = rank % 2 == 0 ? kUnevenFew : kUnevenMany;
  return counts;
}

std::size_t totalOf(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::span<const std::size_t> sliceOf(std::span<const std::size_t> batch, std::span<const std::size_t> counts,
                                     std::size_t rank) {
  return batch.subspan(totalOf(counts.first(rank)), counts[rank]);
}

double weightedMean(std::span<const double> values, std::span<const std::size_t> counts) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * static_cast<double>(counts[i]);
  return sum / static_cast<double>(totalOf(counts));
}

}  // namespace tutti::train
