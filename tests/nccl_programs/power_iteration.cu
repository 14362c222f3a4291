// The largest eigenvalue of a symmetric matrix in double, its rows divided among the GPUs of one process: a
// warp per row, the vector put together by all-gather, its norm by all-reduce.
#include <cmath>
#include <vector>

#include "tests/nccl_programs/check.h"

constexpr int kRows = 24;  // of each GPU
constexpr int kSteps = 40;

__global__ void rowsTimesVector(const double* rows, const double* vector, double* result, double* square,
                                int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  const int lane = threadIdx.x % warpSize;
  if (row >= kRows) return;
  double sum = 0;
  for (int i = lane; i < n; i += warpSize) sum += __ldg(&rows[size_t(row) * n + i]) * vector[i];
  for (int lanes = warpSize / 2; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lanes);
  if (lane == 0) {
    result[row] = sum;
    atomicAdd(square, sum * sum);
  }
}

__global__ void scale(double* vector, const double* square) {
  if (threadIdx.x < kRows) vector[threadIdx.x] *= rsqrt(*square);
}

double element(int i, int j) { return (i == j ? 4 : 0) + 1.0 / (1 + std::abs(i - j)); }

/// The norm after the last step, which is the eigenvalue's estimate.
double onCpu(int n) {
  std::vector<double> vector(n, 1 / std::sqrt(double(n)));
  double norm = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> next(n, 0);
    norm = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) next[i] += element(i, j) * vector[j];
      norm += next[i] * next[i];
    }
    norm = std::sqrt(norm);
    for (int i = 0; i < n; ++i) vector[i] = next[i] / norm;
  }
  return norm;
}

int main() {
  int n = 0;
  CUDA_CHECK(cudaGetDeviceCount(&n));
  std::vector<ncclComm_t> comms(n);
  std::vector<int> devices(n);
  for (int g = 0; g < n; ++g) devices[g] = n - 1 - g;  // rank 0 on the last GPU
  NCCL_CHECK(ncclCommInitAll(comms.data(), n, devices.data()));
  const int size = kRows * n;
  struct Gpu {
    double *rows, *vector, *mine, *square;
    cudaStream_t stream;
  };
  std::vector<Gpu> gpus(n);
  for (int rank = 0; rank < n; ++rank) {
    Gpu& gpu = gpus[rank];
    CUDA_CHECK(cudaSetDevice(devices[rank]));
    int device = -1;
    NCCL_CHECK(ncclCommCuDevice(comms[rank], &device));
    REQUIRE(device == devices[rank], "rank %d is on device %d", rank, device);
    CUDA_CHECK(cudaStreamCreate(&gpu.stream));
    CUDA_CHECK(cudaMalloc(&gpu.rows, size_t(kRows) * size * sizeof(double)));
    CUDA_CHECK(cudaMalloc(&gpu.vector, size * sizeof(double)));
    CUDA_CHECK(cudaMalloc(&gpu.mine, kRows * sizeof(double)));
    CUDA_CHECK(cudaMalloc(&gpu.square, sizeof(double)));
    std::vector<double> rows;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < size; ++j) rows.push_back(element(rank * kRows + i, j));
    }
    const std::vector<double> start(size, 1 / std::sqrt(double(size)));
    CUDA_CHECK(cudaMemcpyAsync(gpu.rows, rows.data(), rows.size() * sizeof(double), cudaMemcpyHostToDevice,
                               gpu.stream));
    CUDA_CHECK(
        cudaMemcpyAsync(gpu.vector, start.data(), size * sizeof(double), cudaMemcpyHostToDevice, gpu.stream));
  }
  for (int step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      Gpu& gpu = gpus[rank];
      CUDA_CHECK(cudaSetDevice(devices[rank]));
      CUDA_CHECK(cudaMemsetAsync(gpu.square, 0, sizeof(double), gpu.stream));
      rowsTimesVector<<<(kRows * 32 + 127) / 128, 128, 0, gpu.stream>>>(gpu.rows, gpu.vector, gpu.mine,
                                                                        gpu.square, size);
    }
    NCCL_CHECK(ncclGroupStart());
    for (int rank = 0; rank < n; ++rank) {
      NCCL_CHECK(ncclAllReduce(gpus[rank].square, gpus[rank].square, 1, ncclDouble, ncclSum, comms[rank],
                               gpus[rank].stream));
    }
    NCCL_CHECK(ncclGroupEnd());
    NCCL_CHECK(ncclGroupStart());
    for (int rank = 0; rank < n; ++rank) {
      Gpu& gpu = gpus[rank];
      CUDA_CHECK(cudaSetDevice(devices[rank]));
      scale<<<1, 32, 0, gpu.stream>>>(gpu.mine, gpu.square);
      NCCL_CHECK(ncclAllGather(gpu.mine, gpu.vector, kRows, ncclDouble, comms[rank], gpu.stream));
    }
    NCCL_CHECK(ncclGroupEnd());
  }
  const double expected = onCpu(size);
  for (int rank = 0; rank < n; ++rank) {
    Gpu& gpu = gpus[rank];
    CUDA_CHECK(cudaSetDevice(devices[rank]));
    double square = 0;
    CUDA_CHECK(cudaMemcpyAsync(&square, gpu.square, sizeof square, cudaMemcpyDeviceToHost, gpu.stream));
    CUDA_CHECK(cudaStreamSynchronize(gpu.stream));
    REQUIRE(std::abs(std::sqrt(square) - expected) < 1e-11 * expected, "rank %d: %.15g, expected %.15g", rank,
            std::sqrt(square), expected);
    for (double* memory : {gpu.rows, gpu.vector, gpu.mine, gpu.square}) CUDA_CHECK(cudaFree(memory));
    CUDA_CHECK(cudaStreamDestroy(gpu.stream));
    NCCL_CHECK(ncclCommFinalize(comms[rank]));
    NCCL_CHECK(ncclCommDestroy(comms[rank]));
  }
  printf("power_iteration: %d GPUs, order %d: %.12g\n", n, size, expected);
}
