#include <algorithm>
#include <cmath>

#include "tools/train/kernels.h"

namespace tutti::train {
namespace {

// The inner loops run over the contiguous index and update independent elements where that is possible: they
// vectorize without reordering a sum.

template <class T>
class HostKernels final : public Kernels<T> {
 public:
  explicit HostKernels(device::Device& device) : Kernels<T>(device, nullptr) {}

  void load(const Examples& examples) override { examples_ = examples; }

  void embed(std::span<const T> table, std::span<T> out) override {
    const std::size_t width = out.size() / examples_.contexts.size();
    T* to = out.data();
    for (const std::uint8_t symbol : examples_.contexts) {
      to = std::copy_n(table.data() + symbol * width, width, to);
    }
  }

  void affine(std::span<const T> x, std::span<const T> w, std::span<const T> bias, std::span<T> y) override {
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

  void tanh(std::span<T> y) override {
    for (T& value : y) value = std::tanh(value);
  }

  double crossEntropy(std::span<T> z) override {
    const T scale = T{1} / static_cast<T>(examples_.count);
    const std::size_t vocabulary = z.size() / examples_.count;
    double sum_of_losses = 0;
    for (std::size_t row = 0; row < examples_.count; ++row) {
      const std::span<T> logits = z.subspan(row * vocabulary, vocabulary);
      const std::size_t target = examples_.targets[row];
      // Shifted by the largest logit, so that exp cannot overflow.
      const T largest = *std::max_element(logits.begin(), logits.end());
      const T shifted_target = logits[target] - largest;
      T sum = 0;
      for (T& value : logits) {
        value = std::exp(value - largest);
        sum += value;
      }
      sum_of_losses += static_cast<double>(std::log(sum) - shifted_target);
      for (T& value : logits) value = value / sum * scale;
      logits[target] -= scale;
    }
    return sum_of_losses / static_cast<double>(examples_.count);
  }

  void weightGradient(std::span<const T> x, std::span<const T> dy, std::span<T> dw,
                      std::span<T> dbias) override {
    const std::size_t out = dbias.size();
    const std::size_t in = dw.size() / out;
    std::fill(dw.begin(), dw.end(), T{0});
    std::fill(dbias.begin(), dbias.end(), T{0});
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

  void inputGradient(std::span<const T> dy, std::span<const T> w, std::span<T> dx) override {
    const std::size_t out = dy.size() / examples_.count;
    const std::size_t in = w.size() / out;
    for (std::size_t row = 0; row < examples_.count; ++row) {
      const T* dy_row = dy.data() + row * out;
      for (std::size_t i = 0; i < in; ++i) {
        const T* w_row = w.data() + i * out;
        T sum = 0;
        for (std::size_t o = 0; o < out; ++o) sum += dy_row[o] * w_row[o];
        dx[row * in + i] = sum;
      }
    }
  }

  void tanhGradient(std::span<const T> y, std::span<T> delta) override {
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] *= T{1} - y[i] * y[i];
  }

  void embedGradient(std::span<const T> delta, std::span<T> table) override {
    const std::size_t width = delta.size() / examples_.contexts.size();
    std::fill(table.begin(), table.end(), T{0});
    const T* from = delta.data();
    for (const std::uint8_t symbol : examples_.contexts) {
      T* row = table.data() + symbol * width;
      for (std::size_t e = 0; e < width; ++e) row[e] += *from++;
    }
  }

  void scale(T factor, std::span<T> values) override {
    for (T& value : values) value *= factor;
  }

  void sgd(const SgdStep& step, std::span<const T> gradient, std::span<T> velocity,
           std::span<T> parameters) override {
    const auto rate = static_cast<T>(step.rate);
    const auto momentum = static_cast<T>(step.momentum);
    for (std::size_t i = 0; i < velocity.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      parameters[i] -= rate * velocity[i];
    }
  }

  void adam(const AdamStep& step, std::span<const T> gradient, std::span<T> mean, std::span<T> square,
            std::span<T> parameters) override {
    const auto rate = static_cast<T>(step.rate);
    const auto beta1 = static_cast<T>(kAdamBeta1);
    const auto beta2 = static_cast<T>(kAdamBeta2);
    const auto mean_scale = static_cast<T>(step.mean_scale);
    const auto square_scale = static_cast<T>(step.square_scale);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const T g = gradient[i];
      mean[i] = beta1 * mean[i] + (T{1} - beta1) * g;
      square[i] = beta2 * square[i] + (T{1} - beta2) * g * g;
      const T denominator = std::sqrt(square[i] / square_scale) + static_cast<T>(kAdamEpsilon);
      parameters[i] -= rate * (mean[i] / mean_scale) / denominator;
    }
  }

 private:
  Examples examples_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernels<T>> makeHostKernels(device::Device& device) {
  return std::make_unique<HostKernels<T>>(device);
}

template std::unique_ptr<Kernels<float>> makeHostKernels(device::Device&);
template std::unique_ptr<Kernels<double>> makeHostKernels(device::Device&);

}  // namespace tutti::train
