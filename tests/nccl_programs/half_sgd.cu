// Data-parallel SGD in mixed precision, one process per GPU: gradients in fp16 times a loss scale, averaged;
// a step in which any rank overflowed is left out by all, and the scale halved. Weights are kept in fp32.
#include <cmath>
#include <vector>

#include <cuda_fp16.h>

#include "tests/nccl_programs/launcher.h"

constexpr int kFeatures = 64;
constexpr int kSamples = 48;  // of each rank
constexpr int kSteps = 12;
constexpr float kRate = 0.25f;

/// One block per feature. gradient = scale * mean over samples of (x.w - y) * x
__global__ void gradients(const __half* x, const __half* y, const float* w, float scale, __half* gradient) {
  extern __shared__ float parts[];
  float sum = 0;
  for (int s = threadIdx.x; s < kSamples; s += blockDim.x) {
    const __half2* row = reinterpret_cast<const __half2*>(x + s * kFeatures);
    float2 dot = make_float2(0, 0);
    for (int f = 0; f < kFeatures / 2; ++f) {
      const float2 values = __half22float2(row[f]);
      dot.x += values.x * w[2 * f];
      dot.y += values.y * w[2 * f + 1];
    }
    sum += (dot.x + dot.y - __half2float(y[s])) * __half2float(x[s * kFeatures + blockIdx.x]);
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) gradient[blockIdx.x] = __float2half_rn(scale * parts[0] / kSamples);
}

__global__ void findOverflow(const __half* gradient, int* found) {
  const __half value = gradient[threadIdx.x];
  if (__hisinf(value) || __hisnan(value)) atomicExch(found, 1);
}

__global__ void update(float* w, const __half* gradient, float scale) {
  w[threadIdx.x] = fmaf(-kRate / scale, __half2float(gradient[threadIdx.x]), w[threadIdx.x]);
}

/// Sixteenths, so that they are exact in fp16.
float feature(int rank, int sample, int f) { return float((rank * 31 + sample * 17 + f * 7) % 33 - 16) / 16; }
float target(int rank, int sample) {
  float sum = 0;
  for (int f = 0; f < kFeatures; ++f) sum += feature(rank, sample, f) * float(f % 5 - 2) / 4;
  return sum;
}

double lossOf(const std::vector<double>& w, int nranks) {
  double sum = 0;
  for (int r = 0; r < nranks; ++r) {
    for (int s = 0; s < kSamples; ++s) {
      double error = -double(__half2float(__float2half(target(r, s))));
      for (int f = 0; f < kFeatures; ++f) error += w[f] * feature(r, s, f);
      sum += error * error;
    }
  }
  return sum / (nranks * kSamples);
}

/// The same steps in double, without scale and overflow.
std::vector<double> onCpu(int nranks, int steps) {
  std::vector<double> w(kFeatures, 0);
  for (int step = 0; step < steps; ++step) {
    std::vector<double> gradient(kFeatures, 0);
    for (int r = 0; r < nranks; ++r) {
      for (int s = 0; s < kSamples; ++s) {
        double error = -double(__half2float(__float2half(target(r, s))));
        for (int f = 0; f < kFeatures; ++f) error += w[f] * feature(r, s, f);
        for (int f = 0; f < kFeatures; ++f) gradient[f] += error * feature(r, s, f) / (nranks * kSamples);
      }
    }
    for (int f = 0; f < kFeatures; ++f) w[f] -= kRate * gradient[f];
  }
  return w;
}

int main(int, char** argv) {
  const Process self = joinByFile(argv[1]);
  std::vector<__half> x(kSamples * kFeatures);
  std::vector<__half> y(kSamples);
  for (int s = 0; s < kSamples; ++s) {
    for (int f = 0; f < kFeatures; ++f) x[s * kFeatures + f] = __float2half(feature(self.rank, s, f));
    y[s] = __float2half(target(self.rank, s));
  }
  __half *dx, *dy, *gradient;
  float* w;
  int* overflow;
  CUDA_CHECK(cudaMalloc(&dx, x.size() * sizeof(__half)));
  CUDA_CHECK(cudaMalloc(&dy, y.size() * sizeof(__half)));
  CUDA_CHECK(cudaMalloc(&gradient, kFeatures * sizeof(__half)));
  CUDA_CHECK(cudaMalloc(&w, kFeatures * sizeof(float)));
  CUDA_CHECK(cudaMallocHost(&overflow, sizeof(int)));
  CUDA_CHECK(cudaMemcpy(dx, x.data(), x.size() * sizeof(__half), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dy, y.data(), y.size() * sizeof(__half), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(w, 0, kFeatures * sizeof(float)));
  CUDA_CHECK(cudaDeviceSynchronize());  // before work on a non-blocking stream

  float scale = 1 << 20;
  int left_out = 0;
  for (int step = 0; step < kSteps;) {
    *overflow = 0;
    gradients<<<kFeatures, 32, 32 * sizeof(float), self.stream>>>(dx, dy, w, scale, gradient);
    NCCL_CHECK(ncclAllReduce(gradient, gradient, kFeatures, ncclHalf, ncclAvg, self.comm, self.stream));
    findOverflow<<<1, kFeatures, 0, self.stream>>>(gradient, overflow);
    NCCL_CHECK(ncclAllReduce(overflow, overflow, 1, ncclInt, ncclMax, self.comm, self.stream));
    CUDA_CHECK(cudaStreamSynchronize(self.stream));
    if (*overflow != 0) {
      scale /= 2;
      REQUIRE(++left_out < 40, "the scale has fallen to %g and gradients still overflow", scale);
      continue;
    }
    update<<<1, kFeatures, 0, self.stream>>>(w, gradient, scale);
    ++step;
  }
  std::vector<float> got(kFeatures);
  CUDA_CHECK(cudaMemcpyAsync(got.data(), w, kFeatures * sizeof(float), cudaMemcpyDeviceToHost, self.stream));
  CUDA_CHECK(cudaStreamSynchronize(self.stream));
  const auto expected = onCpu(self.nranks, kSteps);
  for (int f = 0; f < kFeatures; ++f) {
    REQUIRE(std::abs(got[f] - expected[f]) < 4e-3, "weight %d is %g, expected %g", f, got[f], expected[f]);
  }
  const double first = lossOf(std::vector<double>(kFeatures, 0), self.nranks);
  const double last = lossOf({got.begin(), got.end()}, self.nranks);
  REQUIRE(left_out > 0 && last < first / 2, "%d steps left out, loss %g of %g", left_out, last, first);
  CUDA_CHECK(cudaFreeHost(overflow));
  for (void* memory : {static_cast<void*>(dx), static_cast<void*>(dy), static_cast<void*>(gradient),
                       static_cast<void*>(w)}) {
    CUDA_CHECK(cudaFree(memory));
  }
  leave(self);
  printf("half_sgd: rank %d of %d: loss %.3f -> %.3f, %d overflows\n", self.rank, self.nranks, first, last,
         left_out);
}
