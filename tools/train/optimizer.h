// SGD with momentum, and Adam, over the flat parameter vector.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tutti::train {

enum class OptimizerKind { kSgd, kAdam };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kSgd;
  double learning_rate = 0.03;
  double momentum = 0.9;  ///< SGD only
};

/// Part of an optimizer's state: one value per parameter, in the layout of the parameters.
template <class T>
struct StateVector {
  std::string name;
  std::span<const T> values;
};

template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Moves the parameters by one step. `step` counts from 1; both spans have the size given at construction.
  virtual void update(std::size_t step, std::span<const T> gradient, std::span<T> parameters) = 0;

  /// All that the next update depends on, besides parameters and the step number. Valid while *this lives.
  virtual std::vector<StateVector<T>> state() const = 0;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
};

/// SGD with momentum m, rate r:  v = m v + g;  p = p - r v.
/// Adam (Kingma, Ba 2015, algorithm 1) with b1 = 0.9, b2 = 0.999, e = 1e-8:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
///   p = p - r (m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + e).
/// State starts at zero. Evaluated in T, in the order written.
template <class T>
std::unique_ptr<Optimizer<T>> makeOptimizer(const OptimizerSettings& settings, std::size_t parameter_count);

extern template std::unique_ptr<Optimizer<float>> makeOptimizer(const OptimizerSettings&, std::size_t);
extern template std::unique_ptr<Optimizer<double>> makeOptimizer(const OptimizerSettings&, std::size_t);

}  // namespace tutti::train
