// What a network and its optimizer compute, over the memory of one device: loops on the host
// (host_kernels.cc) or CUDA kernels (cuda_kernels.cu). Both sum in the same order, so equal inputs give equal
// bits in every process that uses the same of the two; between the two only exp, log and tanh differ.
//
// Spans are memory of the device, which the host may not touch. Matrices are row-major; their other side
// follows from the sizes. N examples of K context symbols each, V symbols, E numbers per symbol. Calls are
// carried out in order, on the stream; what they return is there when they return. Sizes are not 0.
#pragma once

#include <memory>
#include <span>

#include "tools/device/device.h"
#include "tools/train/data.h"

namespace tutti::train {

struct SgdStep {
  double rate = 0;
  double momentum = 0;
};

struct AdamStep {
  double rate = 0;
  double mean_scale = 1;    ///< 1 - b1^step
  double square_scale = 1;  ///< 1 - b2^step
};

inline constexpr double kAdamBeta1 = 0.9;
inline constexpr double kAdamBeta2 = 0.999;
inline constexpr double kAdamEpsilon = 1e-8;

template <class T>
class Kernels {
 public:
  /// The device outlives the object.
  Kernels(device::Device& device, cudaStream_t stream) : device_(device), stream_(stream) {}
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  virtual ~Kernels() = default;

  device::Device& device() const { return device_; }
  cudaStream_t stream() const { return stream_; }

  /// The examples that the calls below are about.
  virtual void load(const Examples& examples) = 0;

  /// out [N K x E]: for each context symbol its row of `table` [V x E]
  virtual void embed(std::span<const T> table, std::span<T> out) = 0;
  /// y [N x out] = x [N x in] w [in x out] + bias [out]
  virtual void affine(std::span<const T> x, std::span<const T> w, std::span<const T> bias,
                      std::span<T> y) = 0;
  /// y = tanh(y)
  virtual void tanh(std::span<T> y) = 0;
  /// Returns the mean over the examples of log(sum over v of exp(z_v)) - z_target, and replaces z [N x V] by
  /// its derivative, (softmax(z) - onehot(target)) / N.
  virtual double crossEntropy(std::span<T> z) = 0;

  /// dw [in x out] = x^T dy and dbias [out] = column sums of dy, with x [N x in] and dy [N x out]
  virtual void weightGradient(std::span<const T> x, std::span<const T> dy, std::span<T> dw,
                              std::span<T> dbias) = 0;
  /// dx [N x in] = dy [N x out] w^T, with w [in x out]
  virtual void inputGradient(std::span<const T> dy, std::span<const T> w, std::span<T> dx) = 0;
  /// delta = delta (1 - y^2), the derivative of tanh where y is its value
  virtual void tanhGradient(std::span<const T> y, std::span<T> delta) = 0;
  /// table [V x E]: for each symbol the sum of the rows of delta [N K x E] where it is
  virtual void embedGradient(std::span<const T> delta, std::span<T> table) = 0;

  /// values = factor values
  virtual void scale(T factor, std::span<T> values) = 0;
  /// v = m v + g;  p = p - r v
  virtual void sgd(const SgdStep& step, std::span<const T> gradient, std::span<T> velocity,
                   std::span<T> parameters) = 0;
  /// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
  /// p = p - r (m / mean_scale) / (sqrt(v / square_scale) + e)
  virtual void adam(const AdamStep& step, std::span<const T> gradient, std::span<T> mean, std::span<T> square,
                    std::span<T> parameters) = 0;

 private:
  device::Device& device_;
  cudaStream_t stream_;
};

/// On host memory. Instances exist for float and double.
template <class T>
std::unique_ptr<Kernels<T>> makeHostKernels(device::Device& device);

/// On whatever memory the device has. Throws Error where the library of CUDA kernels is missing.
template <class T>
std::unique_ptr<Kernels<T>> makeKernels(device::Device& device, cudaStream_t stream);

extern template std::unique_ptr<Kernels<float>> makeHostKernels(device::Device&);
extern template std::unique_ptr<Kernels<double>> makeHostKernels(device::Device&);
extern template std::unique_ptr<Kernels<float>> makeKernels(device::Device&, cudaStream_t);
extern template std::unique_ptr<Kernels<double>> makeKernels(device::Device&, cudaStream_t);

}  // namespace tutti::train
