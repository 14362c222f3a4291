#include "tools/train/optimizer.h"

#include <cmath>

namespace tutti::train {
namespace {

template <class T>
class Sgd final : public Optimizer<T> {
 public:
  Sgd(const OptimizerSettings& settings, std::size_t count)
      : rate_(static_cast<T>(settings.learning_rate)),
        momentum_(static_cast<T>(settings.momentum)),
        velocity_(count) {}

  void update(std::size_t /*step*/, std::span<const T> gradient, std::span<T> parameters) override {
    for (std::size_t i = 0; i < velocity_.size(); ++i) {
      velocity_[i] = momentum_ * velocity_[i] + gradient[i];
      parameters[i] -= rate_ * velocity_[i];
    }
  }

  std::vector<StateVector<T>> state() const override { return {{"momentum", velocity_}}; }

 private:
  T rate_;
  T momentum_;
  std::vector<T> velocity_;
};

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

template <class T>
class Adam final : public Optimizer<T> {
 public:
  Adam(const OptimizerSettings& settings, std::size_t count)
      : rate_(static_cast<T>(settings.learning_rate)), mean_(count), square_(count) {}

  void update(std::size_t step, std::span<const T> gradient, std::span<T> parameters) override {
    const auto beta1 = static_cast<T>(kBeta1);
    const auto beta2 = static_cast<T>(kBeta2);
    // 1 - b^step loses its digits in fp32 at the first steps: taken in double.
    const auto mean_scale = static_cast<T>(1.0 - std::pow(kBeta1, static_cast<double>(step)));
    const auto square_scale = static_cast<T>(1.0 - std::pow(kBeta2, static_cast<double>(step)));
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      const T g = gradient[i];
      mean_[i] = beta1 * mean_[i] + (T{1} - beta1) * g;
      square_[i] = beta2 * square_[i] + (T{1} - beta2) * g * g;
      const T denominator = std::sqrt(square_[i] / square_scale) + static_cast<T>(kEpsilon);
      parameters[i] -= rate_ * (mean_[i] / mean_scale) / denominator;
    }
  }

  std::vector<StateVector<T>> state() const override { return {{"adam_m", mean_}, {"adam_v", square_}}; }

 private:
  T rate_;
  std::vector<T> mean_;    ///< moving mean of the gradient
  std::vector<T> square_;  ///< moving mean of its square
};

}  // namespace

template <class T>
std::unique_ptr<Optimizer<T>> makeOptimizer(const OptimizerSettings& settings, std::size_t parameter_count) {
  if (settings.kind == OptimizerKind::kAdam) return std::make_unique<Adam<T>>(settings, parameter_count);
  return std::make_unique<Sgd<T>>(settings, parameter_count);
}

template std::unique_ptr<Optimizer<float>> makeOptimizer(const OptimizerSettings&, std::size_t);
template std::unique_ptr<Optimizer<double>> makeOptimizer(const OptimizerSettings&, std::size_t);

}  // namespace tutti::train
