// Two matrix products as tensor-parallel layers divide them, all GPUs in one process: the first by columns,
// the second by rows; partial results are added up by a reduce-scatter and put together by an all-gather.
// Small whole numbers.
#include <vector>

#include "tests/nccl_programs/check.h"

constexpr int kTile = 16;

/// c[m x n] = a[m x k] b[k x n]
template <class T>
__global__ void multiply(const T* a, const T* b, T* c, int m, int n, int k) {
  __shared__ T tile_a[kTile][kTile + 1];
  __shared__ T tile_b[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  T sum = 0;
  for (int at = 0; at < k; at += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * k + at + threadIdx.x] : T(0);
    tile_b[threadIdx.y][threadIdx.x] =
        at + threadIdx.y < k && column < n ? b[(at + threadIdx.y) * n + column] : T(0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

__global__ void relu(float4* values, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const float4 v = values[i];
    values[i] = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
  }
}

using Matrix = std::vector<float>;

Matrix made(int rows, int columns, int seed) {
  Matrix result(rows * columns);
  for (size_t i = 0; i < result.size(); ++i) result[i] = float(int(i * 29 + seed * 13) % 7 - 3);
  return result;
}

Matrix onCpu(const Matrix& a, const Matrix& b, int m, int n, int k) {
  Matrix c(m * n, 0);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

void launchMultiply(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  multiply<float><<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c, m, n, k);
  CUDA_CHECK(cudaGetLastError());
}

int main() {
  int n = 0;
  CUDA_CHECK(cudaGetDeviceCount(&n));
  const int batch = 4 * n, in = 24, per = 12, hidden = per * n, out = 20;  // `per`: hidden columns of a GPU
  const Matrix x = made(batch, in, 1), w1 = made(in, hidden, 2), w2 = made(hidden, out, 3);
  struct Gpu {
    float *x, *w1, *w2, *h, *partial, *mine, *y;
    cudaStream_t stream;
  };
  std::vector<Gpu> gpus(n);
  std::vector<ncclComm_t> comms(n);
  NCCL_CHECK(ncclCommInitAll(comms.data(), n, nullptr));
  for (int g = 0; g < n; ++g) {
    Gpu& gpu = gpus[g];
    CUDA_CHECK(cudaSetDevice(g));
    CUDA_CHECK(cudaStreamCreate(&gpu.stream));
    const auto make = [](float** memory, int count) {
      CUDA_CHECK(cudaMalloc(memory, count * sizeof(float)));
    };
    make(&gpu.x, batch * in), make(&gpu.w1, in * per), make(&gpu.w2, per * out), make(&gpu.h, batch * per);
    make(&gpu.partial, batch * out), make(&gpu.mine, batch * out / n), make(&gpu.y, batch * out);
    CUDA_CHECK(
        cudaMemcpyAsync(gpu.x, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice, gpu.stream));
    CUDA_CHECK(cudaMemcpy2DAsync(gpu.w1, per * sizeof(float), &w1[g * per], hidden * sizeof(float),
                                 per * sizeof(float), in, cudaMemcpyHostToDevice, gpu.stream));
    CUDA_CHECK(cudaMemcpyAsync(gpu.w2, &w2[g * per * out], per * out * sizeof(float), cudaMemcpyHostToDevice,
                               gpu.stream));
    launchMultiply(gpu.x, gpu.w1, gpu.h, batch, per, in, gpu.stream);
    relu<<<2, 64, 0, gpu.stream>>>(reinterpret_cast<float4*>(gpu.h), batch * per / 4);
    launchMultiply(gpu.h, gpu.w2, gpu.partial, batch, out, per, gpu.stream);
  }
  NCCL_CHECK(ncclGroupStart());
  for (int g = 0; g < n; ++g) {
    NCCL_CHECK(ncclReduceScatter(gpus[g].partial, gpus[g].mine, batch * out / n, ncclFloat, ncclSum, comms[g],
                                 gpus[g].stream));
  }
  NCCL_CHECK(ncclGroupEnd());
  NCCL_CHECK(ncclGroupStart());
  for (int g = 0; g < n; ++g) {
    NCCL_CHECK(ncclAllGather(gpus[g].mine, gpus[g].y, batch * out / n, ncclFloat, comms[g], gpus[g].stream));
  }
  NCCL_CHECK(ncclGroupEnd());

  Matrix h = onCpu(x, w1, batch, hidden, in);
  for (float& value : h) value = value > 0 ? value : 0;
  const Matrix expected = onCpu(h, w2, batch, out, hidden);
  for (int g = 0; g < n; ++g) {
    Gpu& gpu = gpus[g];
    CUDA_CHECK(cudaSetDevice(g));
    Matrix got(expected.size());
    CUDA_CHECK(
        cudaMemcpyAsync(got.data(), gpu.y, got.size() * sizeof(float), cudaMemcpyDeviceToHost, gpu.stream));
    CUDA_CHECK(cudaStreamSynchronize(gpu.stream));
    for (size_t i = 0; i < got.size(); ++i) {
      REQUIRE(got[i] == expected[i], "GPU %d, element %zu is %g, expected %g", g, i, got[i], expected[i]);
    }
    for (float* memory : {gpu.x, gpu.w1, gpu.w2, gpu.h, gpu.partial, gpu.mine, gpu.y})
      CUDA_CHECK(cudaFree(memory));
    CUDA_CHECK(cudaStreamDestroy(gpu.stream));
    NCCL_CHECK(ncclCommDestroy(comms[g]));
  }
  printf("tensor_parallel: %d GPUs, %dx%d -> %d -> %d: exact\n", n, batch, in, hidden, out);
}
