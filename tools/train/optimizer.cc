#include "tools/train/optimizer.h"

#include <cmath>

namespace tutti::train {
namespace {

template <class T>
class Sgd final : public Optimizer<T> {
 public:
  Sgd(const OptimizerSettings& settings, Kernels<T>& kernels)
      : step_{settings.learning_rate, settings.momentum}, kernels_(kernels) {}

  std::vector<std::string> stateNames() const override { return {"momentum"}; }

  void update(std::size_t /*step*/, std::span<const T> gradient, std::span<T> parameters,
              std::span<T> state) override {
    kernels_.sgd(step_, gradient, state, parameters);
  }

 private:
  SgdStep step_;
  Kernels<T>& kernels_;
};

template <class T>
class Adam final : public Optimizer<T> {
 public:
  Adam(const OptimizerSettings& settings, Kernels<T>& kernels)
      : rate_(settings.learning_rate), kernels_(kernels) {}

  /// Moving means of the gradient and of its square.
  std::vector<std::string> stateNames() const override { return {"adam_m", "adam_v"}; }

  void update(std::size_t step, std::span<const T> gradient, std::span<T> parameters,
              std::span<T> state) override {
    // 1 - b^step loses its digits in fp32 at the first steps: taken in double.
    const AdamStep adam{rate_, 1.0 - std::pow(kAdamBeta1, static_cast<double>(step)),
                        1.0 - std::pow(kAdamBeta2, static_cast<double>(step))};
    const std::size_t count = parameters.size();
    kernels_.adam(adam, gradient, state.first(count), state.last(count), parameters);
  }

 private:
  double rate_;
  Kernels<T>& kernels_;
};

}  // namespace

template <class T>
std::unique_ptr<Optimizer<T>> makeOptimizer(const OptimizerSettings& settings, Kernels<T>& kernels) {
  if (settings.kind == OptimizerKind::kAdam) return std::make_unique<Adam<T>>(settings, kernels);
  return std::make_unique<Sgd<T>>(settings, kernels);
}

template std::unique_ptr<Optimizer<float>> makeOptimizer(const OptimizerSettings&, Kernels<float>&);
template std::unique_ptr<Optimizer<double>> makeOptimizer(const OptimizerSettings&, Kernels<double>&);

}  // namespace tutti::train
