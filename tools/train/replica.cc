#include "tools/train/replica.h"

namespace tutti::train {

template <class T>
Replica<T>::Replica(const ModelShape& shape, const OptimizerSettings& settings, std::uint64_t seed)
    : model_(shape),
      parameters_(parameterCount(shape)),
      optimizer_(makeOptimizer<T>(settings, parameters_.size())) {
  model_.initialise(seed, parameters_);
}

template <class T>
std::vector<NamedBytes> Replica<T>::state() const {
  std::vector<NamedBytes> result;
  for (const Tensor& tensor : tensors()) {
    result.push_back({tensor.name, std::as_bytes(tensor.in(parameters()))});
  }
  for (const StateVector<T>& part : optimizer_->state()) {
    for (const Tensor& tensor : tensors()) {
      result.push_back({tensor.name + "." + part.name, std::as_bytes(tensor.in(part.values))});
    }
  }
  return result;
}

template class Replica<float>;
template class Replica<double>;

}  // namespace tutti::train
