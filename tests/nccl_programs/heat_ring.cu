// Heat on a ring, cut into one piece per GPU of one process: before each step neighbours exchange their
// border cells by grouped sends and receives. The values are whole numbers over a power of two, so that the
// result is exact.
#include <vector>

#include "tests/nccl_programs/check.h"

constexpr int kCells = 500;  // of each GPU, between two halo cells
constexpr int kSteps = 20;

__global__ void step(const double* __restrict__ from, double* __restrict__ to, int cells) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x + 1; i <= cells; i += gridDim.x * blockDim.x) {
    to[i] = 0.25 * from[i - 1] + 0.5 * from[i] + 0.25 * from[i + 1];
  }
}

struct Gpu {
  ncclComm_t comm;
  cudaStream_t stream;
  double* now;
  double* next;
};

void exchangeHalos(std::vector<Gpu>& gpus) {
  const int n = static_cast<int>(gpus.size());
  NCCL_CHECK(ncclGroupStart());
  for (int rank = 0; rank < n; ++rank) {
    Gpu& gpu = gpus[rank];
    const int left = (rank + n - 1) % n;
    const int right = (rank + 1) % n;
    // To both sides; with two GPUs both neighbours are one, and messages match in the order of posting.
    NCCL_CHECK(ncclSend(gpu.now + kCells, 1, ncclDouble, right, gpu.comm, gpu.stream));
    NCCL_CHECK(ncclRecv(gpu.now, 1, ncclDouble, left, gpu.comm, gpu.stream));
    NCCL_CHECK(ncclSend(gpu.now + 1, 1, ncclDouble, left, gpu.comm, gpu.stream));
    NCCL_CHECK(ncclRecv(gpu.now + kCells + 1, 1, ncclDouble, right, gpu.comm, gpu.stream));
  }
  NCCL_CHECK(ncclGroupEnd());
}

std::vector<double> onCpu(std::vector<double> cells) {
  const size_t n = cells.size();
  for (int s = 0; s < kSteps; ++s) {
    std::vector<double> next(n);
    for (size_t i = 0; i < n; ++i) {
      next[i] = 0.25 * cells[(i + n - 1) % n] + 0.5 * cells[i] + 0.25 * cells[(i + 1) % n];
    }
    cells.swap(next);
  }
  return cells;
}

int main() {
  int n = 0;
  CUDA_CHECK(cudaGetDeviceCount(&n));
  std::vector<double> start(size_t(n) * kCells);
  for (size_t i = 0; i < start.size(); ++i) start[i] = double(i * 37 % 101);

  std::vector<ncclComm_t> comms(n);
  NCCL_CHECK(ncclCommInitAll(comms.data(), n, nullptr));
  std::vector<Gpu> gpus(n);
  for (int rank = 0; rank < n; ++rank) {
    Gpu& gpu = gpus[rank];
    gpu.comm = comms[rank];
    CUDA_CHECK(cudaSetDevice(rank));
    CUDA_CHECK(cudaStreamCreate(&gpu.stream));
    CUDA_CHECK(cudaMalloc(&gpu.now, (kCells + 2) * sizeof(double)));
    CUDA_CHECK(cudaMalloc(&gpu.next, (kCells + 2) * sizeof(double)));
    CUDA_CHECK(cudaMemcpyAsync(gpu.now + 1, &start[size_t(rank) * kCells], kCells * sizeof(double),
                               cudaMemcpyHostToDevice, gpu.stream));
  }
  for (int s = 0; s < kSteps; ++s) {
    exchangeHalos(gpus);
    for (int rank = 0; rank < n; ++rank) {
      CUDA_CHECK(cudaSetDevice(rank));
      step<<<2, 128, 0, gpus[rank].stream>>>(gpus[rank].now, gpus[rank].next, kCells);
      CUDA_CHECK(cudaGetLastError());
      std::swap(gpus[rank].now, gpus[rank].next);
    }
  }
  const auto expected = onCpu(start);
  std::vector<double> got(start.size());
  for (int rank = 0; rank < n; ++rank) {
    CUDA_CHECK(cudaSetDevice(rank));
    CUDA_CHECK(cudaMemcpyAsync(&got[size_t(rank) * kCells], gpus[rank].now + 1, kCells * sizeof(double),
                               cudaMemcpyDeviceToHost, gpus[rank].stream));
    CUDA_CHECK(cudaStreamSynchronize(gpus[rank].stream));
  }
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i] == expected[i], "cell %zu is %.17g, expected %.17g", i, got[i], expected[i]);
  }
  for (int rank = 0; rank < n; ++rank) {
    CUDA_CHECK(cudaSetDevice(rank));
    CUDA_CHECK(cudaFree(gpus[rank].now));
    CUDA_CHECK(cudaFree(gpus[rank].next));
    CUDA_CHECK(cudaStreamDestroy(gpus[rank].stream));
    NCCL_CHECK(ncclCommDestroy(gpus[rank].comm));
  }
  printf("heat_ring: %d GPUs, %zu cells, %d steps: exact\n", n, got.size(), kSteps);
}
