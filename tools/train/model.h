// A small next-character network over one flat parameter vector, forward and backward.
//
//   context [N x K] symbols
//     -> embedding [V x E], concatenated      a0 [N x K*E]
//     -> 1 or 2 dense layers of width H, tanh a_l = tanh(a_(l-1) W_l + b_l)   [N x H]
//     -> output layer                         z = a W + b                     [N x V]
//     -> softmax cross-entropy, mean over N:  loss = mean(log sum_v exp(z_v) - z_target)
//
// Parameters, gradients and optimizer state are flat vectors with one layout, so a gradient is averaged by
// one all-reduce; tensors are named ranges of it. Arithmetic is in T and in a fixed order, on the host or on
// a GPU (kernels.h): equal inputs give equal bits in every process that uses the same of the two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/train/array.h"
#include "tools/train/data.h"
#include "tools/train/kernels.h"

namespace tutti::train {

struct ModelShape {
  std::size_t vocabulary = 0;
  std::size_t context = 0;
  std::size_t embedding = 0;
  std::size_t hidden = 0;
  std::size_t layers = 1;  ///< dense layers with tanh before the output layer
};

/// A row-major matrix [rows x columns] inside the flat vector; a bias has one row.
struct Tensor {
  std::string name;
  std::size_t offset = 0;  ///< elements from the start of the flat vector
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t count() const { return rows * columns; }
  template <class T>
  std::span<T> in(std::span<T> flat) const {
    return flat.subspan(offset, count());
  }
};

/// embedding [V x E], then weight [inputs x outputs] and bias [outputs] of dense1, (dense2,) output.
std::vector<Tensor> tensorLayout(const ModelShape& shape);

/// Elements of the flat vector.
std::size_t parameterCount(const ModelShape& shape);

/// Holds no parameters, only the activations of the call in progress: one thread at a time.
template <class T>
class Model {
 public:
  /// The kernels outlive it.
  Model(const ModelShape& shape, Kernels<T>& kernels);

  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// Weights uniform in +-sqrt(6 / (inputs + outputs)) (Glorot, Bengio 2010), embedding uniform in +-1,
  /// biases 0: the same bits for the same seed everywhere. `parameters` is host memory.
  void initialise(std::uint64_t seed, std::span<T> parameters) const;

  /// Mean loss over the examples, in nats; *gradient* is overwritten with its derivative by every parameter.
  /// examples.count > 0, symbols < vocabulary. Both spans are memory of the kernels' device.
  double lossAndGradient(std::span<const T> parameters, const Examples& examples, std::span<T> gradient);

 private:
  double forward(std::span<const T> parameters);
  void backward(std::span<const T> parameters, std::span<T> gradient);

  std::size_t layerCount() const { return shape_.layers + 1; }
  const Tensor& weightOf(std::size_t layer) const { return tensors_[1 + 2 * layer]; }
  const Tensor& biasOf(std::size_t layer) const { return tensors_[2 + 2 * layer]; }
  std::size_t inputsOf(std::size_t layer) const { return weightOf(layer).rows; }
  /// [N x inputs] of layer l; of layerCount() the logits, later their derivative.
  std::span<T> activation(std::size_t layer) const;
  void makeRoom(std::size_t examples);

  ModelShape shape_;
  std::vector<Tensor> tensors_;
  Kernels<T>& kernels_;
  std::size_t examples_ = 0;  ///< of the call in progress
  std::size_t room_ = 0;      ///< examples that the arrays hold
  std::vector<Array<T>> activations_;
  std::array<Array<T>, 2> deltas_;  ///< derivatives by the inputs of two layers in turn
};

extern template class Model<float>;
extern template class Model<double>;

}  // namespace tutti::train
