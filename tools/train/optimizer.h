// SGD with momentum, and Adam, over the flat parameter vector.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/train/kernels.h"

namespace tutti::train {

enum class OptimizerKind { kSgd, kAdam };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kSgd;
  double learning_rate = 0.03;
  double momentum = 0.9;  ///< SGD only
};

/// Holds no numbers: parameters and state are the caller's.
template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Names of the parts of the state, each one value per parameter, in the layout of the parameters. With
  /// parameters and step number they are all that the next update depends on. They start at zero.
  virtual std::vector<std::string> stateNames() const = 0;

  /// Moves the parameters by one step. `step` counts from 1; `state` holds the parts one after the other. All
  /// are memory of the kernels' device.
  virtual void update(std::size_t step, std::span<const T> gradient, std::span<T> parameters,
                      std::span<T> state) = 0;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
};

/// SGD with momentum m, rate r:  v = m v + g;  p = p - r v.
/// Adam (Kingma, Ba 2015, algorithm 1) with b1 = 0.9, b2 = 0.999, e = 1e-8:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
///   p = p - r (m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + e).
/// Evaluated in T, in the order written. The kernels outlive it.
template <class T>
std::unique_ptr<Optimizer<T>> makeOptimizer(const OptimizerSettings& settings, Kernels<T>& kernels);

extern template std::unique_ptr<Optimizer<float>> makeOptimizer(const OptimizerSettings&, Kernels<float>&);
extern template std::unique_ptr<Optimizer<double>> makeOptimizer(const OptimizerSettings&, Kernels<double>&);

}  // namespace tutti::train
