// Becomes libtutti_train_cuda.so. One thread computes one number, and adds up its terms in the order of the
// host's loops: no atomics, so results do not depend on the schedule.
#include "tools/train/cuda_kernels.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/device/memory.h"
#include "tools/device/plugin.h"
#include "tools/train/array.h"
#include "tutti/error.h"

namespace tutti::train {
namespace {

constexpr unsigned kThreads = 128;
/// The networks are small: more blocks would have nothing to do.
constexpr std::size_t kMaxBlocks = 64;

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw Error(ncclUnhandledCudaError,
              std::string(what) + ": " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
}

/// Calls work(i, arguments...) for every i < count, one thread each at a time.
template <class Work, class... Arguments>
__global__ void forEach(std::size_t count, Arguments... arguments) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    Work::at(i, arguments...);
  }
}

template <class Work, class... Arguments>
void launch(cudaStream_t stream, std::size_t count, Arguments... arguments) {
  const std::size_t blocks = std::min<std::size_t>((count + kThreads - 1) / kThreads, kMaxBlocks);
  forEach<Work, Arguments...><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(count, arguments...);
  require(cudaGetLastError(), "launch of a kernel");
}

struct Embed {
  template <class T>
  static __device__ void at(std::size_t i, const std::uint8_t* contexts, const T* table, std::size_t width,
                            T* out) {
    out[i] = table[contexts[i / width] * width + i % width];
  }
};

struct Affine {
  template <class T>
  static __device__ void at(std::size_t i, const T* x, const T* w, const T* bias, std::size_t in,
                            std::size_t out, T* y) {
    const T* row = x + i / out * in;
    const std::size_t column = i % out;
    T sum = bias[column];
    for (std::size_t k = 0; k < in; ++k) sum += row[k] * w[k * out + column];
    y[i] = sum;
  }
};

struct Tanh {
  template <class T>
  static __device__ void at(std::size_t i, T* y) {
    y[i] = tanh(y[i]);
  }
};

struct CrossEntropy {
  template <class T>
  static __device__ void at(std::size_t row, const std::uint8_t* targets, std::size_t vocabulary, T scale,
                            T* all, T* losses) {
    T* z = all + row * vocabulary;
    const std::size_t target = targets[row];
    T largest = z[0];
    for (std::size_t v = 1; v < vocabulary; ++v) largest = largest < z[v] ? z[v] : largest;
    const T shifted_target = z[target] - largest;
    T sum = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) {
      z[v] = exp(z[v] - largest);
      sum += z[v];
    }
    losses[row] = log(sum) - shifted_target;
    for (std::size_t v = 0; v < vocabulary; ++v) z[v] = z[v] / sum * scale;
    z[target] -= scale;
  }
};

struct WeightGradient {
  template <class T>
  static __device__ void at(std::size_t i, const T* x, const T* dy, std::size_t rows, std::size_t in,
                            std::size_t out, T* dw) {
    T sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += x[row * in + i / out] * dy[row * out + i % out];
    dw[i] = sum;
  }
};

struct BiasGradient {
  template <class T>
  static __device__ void at(std::size_t i, const T* dy, std::size_t rows, std::size_t out, T* dbias) {
    T sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += dy[row * out + i];
    dbias[i] = sum;
  }
};

struct InputGradient {
  template <class T>
  static __device__ void at(std::size_t i, const T* dy, const T* w, std::size_t in, std::size_t out, T* dx) {
    const T* dy_row = dy + i / in * out;
    const T* w_row = w + i % in * out;
    T sum = 0;
    for (std::size_t o = 0; o < out; ++o) sum += dy_row[o] * w_row[o];
    dx[i] = sum;
  }
};

struct TanhGradient {
  template <class T>
  static __device__ void at(std::size_t i, const T* y, T* delta) {
    delta[i] *= T{1} - y[i] * y[i];
  }
};

struct EmbedGradient {
  template <class T>
  static __device__ void at(std::size_t i, const std::uint8_t* contexts, std::size_t places,
                            std::size_t width, const T* delta, T* table) {
    T sum = 0;
    for (std::size_t place = 0; place < places; ++place) {
      if (contexts[place] == i / width) sum += delta[place * width + i % width];
    }
    table[i] = sum;
  }
};

struct Scale {
  template <class T>
  static __device__ void at(std::size_t i, T factor, T* values) {
    values[i] *= factor;
  }
};

struct Sgd {
  template <class T>
  static __device__ void at(std::size_t i, T rate, T momentum, const T* gradient, T* velocity,
                            T* parameters) {
    velocity[i] = momentum * velocity[i] + gradient[i];
    parameters[i] -= rate * velocity[i];
  }
};

template <class T>
struct AdamFactors {
  T rate;
  T beta1;
  T beta2;
  T mean_scale;
  T square_scale;
  T epsilon;
};

struct Adam {
  template <class T>
  static __device__ void at(std::size_t i, AdamFactors<T> by, const T* gradient, T* mean, T* square,
                            T* parameters) {
    const T g = gradient[i];
    mean[i] = by.beta1 * mean[i] + (T{1} - by.beta1) * g;
    square[i] = by.beta2 * square[i] + (T{1} - by.beta2) * g * g;
    const T denominator = sqrt(square[i] / by.square_scale) + by.epsilon;
    parameters[i] -= by.rate * (mean[i] / by.mean_scale) / denominator;
  }
};

template <class T>
class CudaKernels final : public Kernels<T> {
 public:
  using Kernels<T>::Kernels;

  void load(const Examples& examples) override {
    count_ = examples.count;
    places_ = examples.contexts.size();
    if (symbols_.bytes() < places_ + count_) symbols_ = device::Memory(this->device(), places_ + count_);
    if (losses_.span().size() < count_) losses_ = Array<T>(this->device(), count_);
    this->device().copyIn(symbols_.data(), examples.contexts.data(), places_, this->stream());
    this->device().copyIn(symbols_.data() + places_, examples.targets.data(), count_, this->stream());
  }

  void embed(std::span<const T> table, std::span<T> out) override {
    run<Embed>(out.size(), contexts(), table.data(), out.size() / places_, out.data());
  }

  void affine(std::span<const T> x, std::span<const T> w, std::span<const T> bias, std::span<T> y) override {
    run<Affine>(y.size(), x.data(), w.data(), bias.data(), w.size() / bias.size(), bias.size(), y.data());
  }

  void tanh(std::span<T> y) override { run<Tanh>(y.size(), y.data()); }

  double crossEntropy(std::span<T> z) override {
    const T scale = T{1} / static_cast<T>(count_);
    run<CrossEntropy>(count_, contexts() + places_, z.size() / count_, scale, z.data(),
                      losses_.span().data());
    std::vector<T> losses(count_);
    this->device().copyOut(losses.data(), losses_.span().data(), count_ * sizeof(T), this->stream());
    double sum = 0;
    for (const T loss : losses) sum += static_cast<double>(loss);
    return sum / static_cast<double>(count_);
  }

  void weightGradient(std::span<const T> x, std::span<const T> dy, std::span<T> dw,
                      std::span<T> dbias) override {
    const std::size_t out = dbias.size();
    run<WeightGradient>(dw.size(), x.data(), dy.data(), count_, dw.size() / out, out, dw.data());
    run<BiasGradient>(out, dy.data(), count_, out, dbias.data());
  }

  void inputGradient(std::span<const T> dy, std::span<const T> w, std::span<T> dx) override {
    run<InputGradient>(dx.size(), dy.data(), w.data(), dx.size() / count_, dy.size() / count_, dx.data());
  }

  void tanhGradient(std::span<const T> y, std::span<T> delta) override {
    run<TanhGradient>(delta.size(), y.data(), delta.data());
  }

  void embedGradient(std::span<const T> delta, std::span<T> table) override {
    run<EmbedGradient>(table.size(), contexts(), places_, delta.size() / places_, delta.data(), table.data());
  }

  void scale(T factor, std::span<T> values) override { run<Scale>(values.size(), factor, values.data()); }

  void sgd(const SgdStep& step, std::span<const T> gradient, std::span<T> velocity,
           std::span<T> parameters) override {
    run<Sgd>(parameters.size(), static_cast<T>(step.rate), static_cast<T>(step.momentum), gradient.data(),
             velocity.data(), parameters.data());
  }

  void adam(const AdamStep& step, std::span<const T> gradient, std::span<T> mean, std::span<T> square,
            std::span<T> parameters) override {
    const AdamFactors<T> by{static_cast<T>(step.rate),         static_cast<T>(kAdamBeta1),
                            static_cast<T>(kAdamBeta2),        static_cast<T>(step.mean_scale),
                            static_cast<T>(step.square_scale), static_cast<T>(kAdamEpsilon)};
    run<Adam>(parameters.size(), by, gradient.data(), mean.data(), square.data(), parameters.data());
  }

 private:
  template <class Work, class... Arguments>
  void run(std::size_t count, Arguments... arguments) {
    launch<Work>(this->stream(), count, arguments...);
  }

  const std::uint8_t* contexts() const { return reinterpret_cast<const std::uint8_t*>(symbols_.data()); }

  std::size_t count_ = 0;   // examples
  std::size_t places_ = 0;  // symbols of their contexts
  device::Memory symbols_;  // of the contexts, then the targets
  Array<T> losses_;         // of each example
};

template <class T>
Kernels<T>* open(int version, device::Device* device, cudaStream_t stream) {
  return version == device::kPluginVersion ? new CudaKernels<T>(*device, stream) : nullptr;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) Kernels<float>* tuttiTrainKernelsFloat(int version,
                                                                              device::Device* device,
                                                                              cudaStream_t stream) {
  return open<float>(version, device, stream);
}
__attribute__((visibility("default"))) Kernels<double>* tuttiTrainKernelsDouble(int version,
                                                                                device::Device* device,
                                                                                cudaStream_t stream) {
  return open<double>(version, device, stream);
}
}

}  // namespace tutti::train
