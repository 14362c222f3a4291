// The oracle of --verify: one replica trained on whole batches in one process.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tools/train/replica.h"

namespace tutti::train {

struct TensorDifference {
  std::string name;
  double relative = 0;  ///< |a - b| / |b| in the Euclidean norm
};

/// Per tensor, in double; 0 when both are zero, infinite when only b is, NaN when there is one in a or b.
template <class T>
std::vector<TensorDifference> compareTensors(const std::vector<Tensor>& tensors, std::span<const T> a,
                                             std::span<const T> b);

/// The largest, NaN when one is NaN.
double largestDifference(const std::vector<TensorDifference>& differences);

/// How far a distributed run may end from the run on whole batches. The two add the same numbers in another
/// order, so each step differs by rounding: 1e-12 in fp64, 1e-4 in fp32. Adam has ten times that, because its
/// first update is g / (|g| + 1e-8): where a gradient is as small as that, its rounding is not small beside
/// it.
template <class T>
double differenceLimit(OptimizerKind kind);

/// Mean of the first and of the last min(10, n/2) values.
struct LossTrend {
  std::size_t window = 0;
  double first = 0;
  double last = 0;

  bool fell() const { return last < first; }
};
LossTrend lossTrend(std::span<const double> losses);

extern template std::vector<TensorDifference> compareTensors(const std::vector<Tensor>&,
                                                             std::span<const float>, std::span<const float>);
extern template std::vector<TensorDifference> compareTensors(const std::vector<Tensor>&,
                                                             std::span<const double>,
                                                             std::span<const double>);

}  // namespace tutti::train
