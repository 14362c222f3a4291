// One replica of the training state: parameters, optimizer state, and the network that works on them. It
// lives in the memory of the kernels' device; the host sees it as of the last fetch().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tools/device/memory.h"
#include "tools/train/array.h"
#include "tools/train/model.h"
#include "tools/train/optimizer.h"
#include "tools/train/replica_hash.h"

namespace tutti::train {

template <class T>
class Replica {
 public:
  /// Equal arguments give equal bits, so ranks start equal without a message. The kernels outlive it.
  Replica(const ModelShape& shape, const OptimizerSettings& settings, std::uint64_t seed,
          Kernels<T>& kernels);

  const std::vector<Tensor>& tensors() const { return model_.tensors(); }
  /// Memory of the device.
  std::span<T> parameters() const { return memory_.span().first(count_); }

  /// Mean loss over `examples`; overwrites `gradient`, memory of the device of the size of the parameters.
  double lossAndGradient(const Examples& examples, std::span<T> gradient) {
    return model_.lossAndGradient(parameters(), examples, gradient);
  }

  /// `step` counts from 1.
  void update(std::size_t step, std::span<const T> gradient) {
    optimizer_->update(step, gradient, parameters(), memory_.span().subspan(count_));
  }

  /// Brings the host's view up to date.
  void fetch() { view_.load(); }
  /// What the host changed in its view becomes the replica.
  void store() { view_.store(); }
  /// In the host's view.
  std::span<T> hostParameters() { return {reinterpret_cast<T*>(view_.data()), count_}; }
  std::span<const T> hostParameters() const { return {reinterpret_cast<const T*>(view_.data()), count_}; }
  /// In the host's view, every tensor of the parameters ("dense1.weight"), then of the optimizer's state
  /// ("dense1.weight.momentum"). Valid while *this lives.
  std::vector<NamedBytes> state() const;

 private:
  std::size_t count_;
  Model<T> model_;
  std::unique_ptr<Optimizer<T>> optimizer_;
  Array<T> memory_;  // parameters, then the parts of the optimizer's state
  device::HostView view_;
};

extern template class Replica<float>;
extern template class Replica<double>;

}  // namespace tutti::train
