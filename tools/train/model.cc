#include "tools/train/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tutti::train {

std::vector<Tensor> tensorLayout(const ModelShape& shape) {
  std::vector<Tensor> tensors;
  std::size_t offset = 0;
  const auto append = [&](std::string name, std::size_t rows, std::size_t columns) {
    tensors.push_back({std::move(name), offset, rows, columns});
    offset += rows * columns;
  };
  append("embedding", shape.vocabulary, shape.embedding);
  std::size_t inputs = shape.context * shape.embedding;
  for (std::size_t layer = 1; layer <= shape.layers + 1; ++layer) {
    const bool last = layer > shape.layers;
    const std::string name = last ? "output" : "dense" + std::to_string(layer);
    const std::size_t outputs = last ? shape.vocabulary : shape.hidden;
    append(name + ".weight", inputs, outputs);
    append(name + ".bias", 1, outputs);
    inputs = outputs;
  }
  return tensors;
}

std::size_t parameterCount(const ModelShape& shape) {
  const Tensor last = tensorLayout(shape).back();
  return last.offset + last.count();
}

template <class T>
Model<T>::Model(const ModelShape& shape, Kernels<T>& kernels)
    : shape_(shape), tensors_(tensorLayout(shape)), kernels_(kernels), activations_(shape.layers + 2) {}

template <class T>
void Model<T>::initialise(std::uint64_t seed, std::span<T> parameters) const {
  Random random(seed);
  std::fill(parameters.begin(), parameters.end(), T{0});
  for (T& value : tensors_[0].in(parameters)) value = static_cast<T>(random.symmetric(1.0));
  for (std::size_t layer = 0; layer < layerCount(); ++layer) {
    const Tensor& weight = weightOf(layer);
    const double limit = std::sqrt(6.0 / static_cast<double>(weight.rows + weight.columns));
    for (T& value : weight.in(parameters)) value = static_cast<T>(random.symmetric(limit));
  }
}

template <class T>
double Model<T>::lossAndGradient(std::span<const T> parameters, const Examples& examples,
                                 std::span<T> gradient) {
  makeRoom(examples.count);
  kernels_.load(examples);
  const double loss = forward(parameters);
  backward(parameters, gradient);
  return loss;
}

template <class T>
std::span<T> Model<T>::activation(std::size_t layer) const {
  const std::size_t width = layer < layerCount() ? inputsOf(layer) : shape_.vocabulary;
  return activations_[layer].span().first(examples_ * width);
}

template <class T>
void Model<T>::makeRoom(std::size_t examples) {
  examples_ = examples;
  if (examples <= room_) return;
  room_ = examples;
  std::size_t widest = shape_.vocabulary;
  for (std::size_t layer = 0; layer < layerCount(); ++layer) {
    activations_[layer] = Array<T>(kernels_.device(), examples * inputsOf(layer));
    widest = std::max(widest, inputsOf(layer));
  }
  activations_.back() = Array<T>(kernels_.device(), examples * shape_.vocabulary);
  for (Array<T>& delta : deltas_) delta = Array<T>(kernels_.device(), examples * widest);
}

template <class T>
double Model<T>::forward(std::span<const T> parameters) {
  kernels_.embed(tensors_[0].in(parameters), activation(0));
  for (std::size_t layer = 0; layer < layerCount(); ++layer) {
    kernels_.affine(activation(layer), weightOf(layer).in(parameters), biasOf(layer).in(parameters),
                    activation(layer + 1));
    if (layer < shape_.layers) kernels_.tanh(activation(layer + 1));
  }
  return kernels_.crossEntropy(activation(layerCount()));
}

template <class T>
void Model<T>::backward(std::span<const T> parameters, std::span<T> gradient) {
  std::span<T> delta = activation(layerCount());
  for (std::size_t layer = layerCount(); layer-- > 0;) {
    const Tensor& weight = weightOf(layer);
    kernels_.weightGradient(activation(layer), delta, weight.in(gradient), biasOf(layer).in(gradient));
    const std::span<T> next = deltas_[layer % 2].span().first(examples_ * inputsOf(layer));
    kernels_.inputGradient(delta, weight.in(parameters), next);
    if (layer > 0) kernels_.tanhGradient(activation(layer), next);
    delta = next;
  }
  kernels_.embedGradient(delta, tensors_[0].in(gradient));
}

template class Model<float>;
template class Model<double>;

}  // namespace tutti::train
