#include "tools/train/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tutti::train {

template <class T>
std::vector<TensorDifference> compareTensors(const std::vector<Tensor>& tensors, std::span<const T> a,
                                             std::span<const T> b) {
  std::vector<TensorDifference> result;
  for (const Tensor& tensor : tensors) {
    const std::span<const T> left = tensor.in(a);
    const std::span<const T> right = tensor.in(b);
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double delta = static_cast<double>(left[i]) - static_cast<double>(right[i]);
      difference += delta * delta;
      size += static_cast<double>(right[i]) * static_cast<double>(right[i]);
    }
    result.push_back({tensor.name, difference == 0 ? 0.0 : std::sqrt(difference / size)});
  }
  return result;
}

double largestDifference(const std::vector<TensorDifference>& differences) {
  double largest = 0;
  for (const TensorDifference& difference : differences) {
    if (std::isnan(difference.relative)) return difference.relative;
    largest = std::max(largest, difference.relative);
  }
  return largest;
}

template <>
double differenceLimit<float>(OptimizerKind kind) {
  return kind == OptimizerKind::kSgd ? 1e-4 : 1e-3;
}

template <>
double differenceLimit<double>(OptimizerKind kind) {
  return kind == OptimizerKind::kSgd ? 1e-12 : 1e-11;
}

LossTrend lossTrend(std::span<const double> losses) {
  const std::size_t window = std::min<std::size_t>(10, losses.size() / 2);
  const auto mean = [window](std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(window);
  };
  return {window, mean(losses.first(window)), mean(losses.last(window))};
}

template std::vector<TensorDifference> compareTensors(const std::vector<Tensor>&, std::span<const float>,
                                                      std::span<const float>);
template std::vector<TensorDifference> compareTensors(const std::vector<Tensor>&, std::span<const double>,
                                                      std::span<const double>);

}  // namespace tutti::train
