// Cross-entropy over a vocabulary that is divided among the ranks, and the largest logits of each row: a
// maximum, a sum and an all-gather. One process per GPU; rank 0 hands the id to the others over TCP, as
// frameworks' stores do.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/nccl_programs/launcher.h"

constexpr int kRows = 6;
constexpr int kColumns = 777;  // of each rank
constexpr int kTop = 4;

struct Maximum {
  static constexpr float kNone = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  static constexpr float kNone = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <class Operation>
__device__ float acrossBlock(float value, Operation operation) {
  __shared__ float of_warps[32];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value = operation(value, __shfl_down_sync(0xffffffff, value, offset));
  }
  __syncthreads();  // of_warps may still be read from the last time
  if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / warpSize ? of_warps[threadIdx.x] : Operation::kNone;
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value = operation(value, __shfl_xor_sync(0xffffffff, value, offset));
  }
  return value;
}

__global__ void rowMaximum(const float* logits, float* result) {
  float value = Maximum::kNone;
  for (int c = threadIdx.x; c < kColumns; c += blockDim.x)
    value = fmaxf(value, logits[blockIdx.x * kColumns + c]);
  value = acrossBlock(value, Maximum());
  if (threadIdx.x == 0) result[blockIdx.x] = value;
}

__global__ void rowSum(const float* logits, const float* maximum, float* result) {
  float value = 0;
  for (int c = threadIdx.x; c < kColumns; c += blockDim.x) {
    value += __expf(logits[blockIdx.x * kColumns + c] - maximum[blockIdx.x]);
  }
  value = acrossBlock(value, Sum());
  if (threadIdx.x == 0) result[blockIdx.x] = value;
}

/// The kTop largest of a row, taken out one after the other.
__global__ void rowTop(float* logits, float* top) {
  float* row = logits + blockIdx.x * kColumns;
  for (int k = 0; k < kTop; ++k) {
    float value = Maximum::kNone;
    for (int c = threadIdx.x; c < kColumns; c += blockDim.x) value = fmaxf(value, row[c]);
    value = __shfl_sync(0xffffffff, acrossBlock(value, Maximum()), 0);
    __shared__ float largest;
    if (threadIdx.x == 0) top[blockIdx.x * kTop + k] = largest = value;
    __syncthreads();
    for (int c = threadIdx.x; c < kColumns; c += blockDim.x) {
      if (row[c] == largest) row[c] = Maximum::kNone;
    }
    __syncthreads();
  }
}

float logitOf(int rank, int row, int column) {  // all of a row differ
  const unsigned place = unsigned(rank * kColumns + column);
  return float(int((place * 4099u + row * 911u) % 65521u) - 30000) / 2048;
}

int main(int, char** argv) {
  const int rank = numberFrom("RANK");
  const int n = numberFrom("WORLD_SIZE");
  CUDA_CHECK(cudaSetDevice(numberFrom("LOCAL_RANK")));
  ncclComm_t comm;
  NCCL_CHECK(ncclCommInitRank(&comm, n, idByTcp(rank, n, atoi(argv[1])), rank));
  std::vector<float> host(kRows * kColumns);
  for (int i = 0; i < kRows * kColumns; ++i) host[i] = logitOf(rank, i / kColumns, i % kColumns);
  float *logits, *maximum, *sum, *top;  // top: of this rank, then of all
  CUDA_CHECK(cudaMalloc((void**)&logits, host.size() * sizeof(float)));
  CUDA_CHECK(cudaMalloc((void**)&maximum, kRows * sizeof(float)));
  CUDA_CHECK(cudaMalloc((void**)&sum, kRows * sizeof(float)));
  CUDA_CHECK(cudaMalloc((void**)&top, (n + 1) * kRows * kTop * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(logits, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  rowMaximum<<<kRows, 96>>>(logits, maximum);  // all of it in the default stream
  NCCL_CHECK(ncclAllReduce(maximum, maximum, kRows, ncclFloat, ncclMax, comm, 0));
  rowSum<<<kRows, 96>>>(logits, maximum, sum);
  NCCL_CHECK(ncclAllReduce(sum, sum, kRows, ncclFloat, ncclSum, comm, 0));
  rowTop<<<kRows, 96>>>(logits, top);
  NCCL_CHECK(ncclAllGather(top, top + kRows * kTop, kRows * kTop, ncclFloat, comm, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> maxima(kRows), sums(kRows), tops(n * kRows * kTop);
  CUDA_CHECK(cudaMemcpy(maxima.data(), maximum, kRows * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(sums.data(), sum, kRows * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(
      cudaMemcpy(tops.data(), top + kRows * kTop, tops.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int row = 0; row < kRows; ++row) {
    std::vector<double> all;
    for (int i = 0; i < n * kColumns; ++i) all.push_back(logitOf(i / kColumns, row, i % kColumns));
    std::sort(all.rbegin(), all.rend());
    double expected = 0;
    for (const double logit : all) expected += std::exp(logit - all[0]);
    REQUIRE(maxima[row] == all[0], "maximum of row %d is %g, expected %g", row, maxima[row], all[0]);
    REQUIRE(std::abs(sums[row] - expected) < 1e-4 * expected, "sum of row %d is %g, expected %g", row,
            sums[row], expected);
    std::vector<double> got;
    for (int r = 0; r < n; ++r)
      got.insert(got.end(), &tops[(r * kRows + row) * kTop], &tops[(r * kRows + row) * kTop] + kTop);
    std::sort(got.rbegin(), got.rend());
    for (int k = 0; k < kTop; ++k)
      REQUIRE(got[k] == all[k], "place %d of row %d: %g, expected %g", k, row, got[k], all[k]);
  }
  for (float* memory : {logits, maximum, sum, top}) CUDA_CHECK(cudaFree(memory));
  NCCL_CHECK(ncclCommDestroy(comm));
  printf("softmax: rank %d of %d: right\n", rank, n);
}
