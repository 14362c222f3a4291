#include "tools/train/replica.h"

#include <algorithm>

namespace tutti::train {

template <class T>
Replica<T>::Replica(const ModelShape& shape, const OptimizerSettings& settings, std::uint64_t seed,
                    Kernels<T>& kernels)
    : count_(parameterCount(shape)),
      model_(shape, kernels),
      optimizer_(makeOptimizer<T>(settings, kernels)),
      memory_(kernels.device(), count_ * (1 + optimizer_->stateNames().size())),
      view_(kernels.device(), kernels.stream(), memory_.bytes().data(), memory_.bytes().size()) {
  std::fill_n(view_.data(), view_.bytes(), std::byte{0});
  model_.initialise(seed, hostParameters());
  store();
}

template <class T>
std::vector<NamedBytes> Replica<T>::state() const {
  std::vector<NamedBytes> result;
  std::span<const T> part = hostParameters();
  for (const Tensor& tensor : tensors()) result.push_back({tensor.name, std::as_bytes(tensor.in(part))});
  for (const std::string& name : optimizer_->stateNames()) {
    part = {part.data() + count_, count_};
    for (const Tensor& tensor : tensors()) {
      result.push_back({tensor.name + "." + name, std::as_bytes(tensor.in(part))});
    }
  }
  return result;
}

template class Replica<float>;
template class Replica<double>;

}  // namespace tutti::train
