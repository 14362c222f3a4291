#include "tools/train/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tutti::train {
namespace {

// The inner loops run over the contiguous index and update independent elements where that is possible: they
// vectorize without reordering a sum.

/// y [n x out] = x [n x in] w [in x out] + bias
template <class T>
void affine(std::span<const T> x, std::span<const T> w, std::span<const T> bias, std::span<T> y) {
  const std::size_t out = bias.size();
  const std::size_t in = w.size() / out;
  for (std::size_t row = 0; row < x.size() / in; ++row) {
    T* y_row = y.data() + row * out;
    std::copy(bias.begin(), bias.end(), y_row);
    for (std::size_t i = 0; i < in; ++i) {
      const T scale = x[row * in + i];
      const T* w_row = w.data() + i * out;
      for (std::size_t o = 0; o < out; ++o) y_row[o] += scale * w_row[o];
    }
  }
}

/// dw [in x out] += x^T dy, dbias [out] += column sums of dy, with x [n x in] and dy [n x out]
template <class T>
void accumulateWeightGradient(std::span<const T> x, std::span<const T> dy, std::span<T> dw,
                              std::span<T> dbias) {
  const std::size_t out = dbias.size();
  const std::size_t in = dw.size() / out;
  for (std::size_t row = 0; row < x.size() / in; ++row) {
    const T* dy_row = dy.data() + row * out;
    for (std::size_t o = 0; o < out; ++o) dbias[o] += dy_row[o];
    for (std::size_t i = 0; i < in; ++i) {
      const T scale = x[row * in + i];
      T* dw_row = dw.data() + i * out;
      for (std::size_t o = 0; o < out; ++o) dw_row[o] += scale * dy_row[o];
    }
  }
}

/// dx [n x in] = dy [n x out] w^T, with w [in x out]
template <class T>
void inputGradient(std::span<const T> dy, std::span<const T> w, std::size_t out, std::span<T> dx) {
  const std::size_t in = w.size() / out;
  for (std::size_t row = 0; row < dx.size() / in; ++row) {
    const T* dy_row = dy.data() + row * out;
    for (std::size_t i = 0; i < in; ++i) {
      const T* w_row = w.data() + i * out;
      T sum = 0;
      for (std::size_t o = 0; o < out; ++o) sum += dy_row[o] * w_row[o];
      dx[row * in + i] = sum;
    }
  }
}

}  // namespace

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
Model<T>::Model(const ModelShape& shape)
    : shape_(shape), tensors_(tensorLayout(shape)), activations_(shape.layers + 2) {}

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
  const double loss = forward(parameters, examples);
  backward(parameters, examples, gradient);
  return loss;
}

template <class T>
double Model<T>::forward(std::span<const T> parameters, const Examples& examples) {
  const std::span<const T> table = tensors_[0].in(parameters);
  activations_[0].resize(examples.count * shape_.context * shape_.embedding);
  T* out = activations_[0].data();
  for (const std::uint8_t symbol : examples.contexts) {
    out = std::copy_n(table.data() + symbol * shape_.embedding, shape_.embedding, out);
  }
  for (std::size_t layer = 0; layer < layerCount(); ++layer) {
    std::vector<T>& y = activations_[layer + 1];
    y.resize(examples.count * weightOf(layer).columns);
    affine<T>(activations_[layer], weightOf(layer).in(parameters), biasOf(layer).in(parameters), y);
    if (layer < shape_.layers) {
      for (T& value : y) value = std::tanh(value);
    }
  }
  return crossEntropy(examples);
}

/// Replaces the logits z by the derivative of the mean loss, (softmax(z) - onehot(target)) / N.
template <class T>
double Model<T>::crossEntropy(const Examples& examples) {
  const T scale = T{1} / static_cast<T>(examples.count);
  double sum_of_losses = 0;
  for (std::size_t row = 0; row < examples.count; ++row) {
    const std::span<T> z =
        std::span<T>(activations_.back()).subspan(row * shape_.vocabulary, shape_.vocabulary);
    const std::size_t target = examples.targets[row];
    // Shifted by the largest logit, so that exp cannot overflow.
    const T largest = *std::max_element(z.begin(), z.end());
    const T shifted_target = z[target] - largest;
    T sum = 0;
    for (T& value : z) {
      value = std::exp(value - largest);
      sum += value;
    }
    sum_of_losses += static_cast<double>(std::log(sum) - shifted_target);
    for (T& value : z) value = value / sum * scale;
    z[target] -= scale;
  }
  return sum_of_losses / static_cast<double>(examples.count);
}

template <class T>
void Model<T>::backward(std::span<const T> parameters, const Examples& examples, std::span<T> gradient) {
  std::fill(gradient.begin(), gradient.end(), T{0});
  delta_ = activations_.back();
  for (std::size_t layer = layerCount(); layer-- > 0;) {
    const Tensor& weight = weightOf(layer);
    const std::vector<T>& input = activations_[layer];
    accumulateWeightGradient<T>(input, delta_, weight.in(gradient), biasOf(layer).in(gradient));
    next_delta_.resize(input.size());
    inputGradient<T>(delta_, weight.in(parameters), weight.columns, next_delta_);
    delta_.swap(next_delta_);
    if (layer > 0) {
      for (std::size_t i = 0; i < delta_.size(); ++i)
        delta_[i] *= T{1} - input[i] * input[i];  // tanh' = 1 - tanh^2
    }
  }
  const std::span<T> table = tensors_[0].in(gradient);
  const T* from = delta_.data();
  for (const std::uint8_t symbol : examples.contexts) {
    T* row = table.data() + symbol * shape_.embedding;
    for (std::size_t e = 0; e < shape_.embedding; ++e) row[e] += *from++;
  }
}

template class Model<float>;
template class Model<double>;

}  // namespace tutti::train
