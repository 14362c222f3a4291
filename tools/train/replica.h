// One replica of the training state: parameters, optimizer state, and the network that works on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tools/train/model.h"
#include "tools/train/optimizer.h"
#include "tools/train/replica_hash.h"

namespace tutti::train {

template <class T>
class Replica {
 public:
  /// Equal arguments give equal bits, so ranks start equal without a message.
  Replica(const ModelShape& shape, const OptimizerSettings& settings, std::uint64_t seed);

  const std::vector<Tensor>& tensors() const { return model_.tensors(); }
  std::span<T> parameters() { return parameters_; }
  std::span<const T> parameters() const { return parameters_; }

  /// Mean loss over `examples`; overwrites `gradient`, which has the size of the parameters.
  double lossAndGradient(const Examples& examples, std::span<T> gradient) {
    return model_.lossAndGradient(parameters_, examples, gradient);
  }

  /// `step` counts from 1.
  void update(std::size_t step, std::span<const T> gradient) {
    optimizer_->update(step, gradient, parameters_);
  }

  /// Every tensor of the parameters ("dense1.weight"), then of the optimizer's state
  /// ("dense1.weight.momentum"). Valid while *this lives.
  std::vector<NamedBytes> state() const;

 private:
  Model<T> model_;
  std::vector<T> parameters_;
  std::unique_ptr<Optimizer<T>> optimizer_;
};

extern template class Replica<float>;
extern template class Replica<double>;

}  // namespace tutti::train
