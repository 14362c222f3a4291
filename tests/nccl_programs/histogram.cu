// A histogram over all GPUs, one thread per GPU: atomics in shared memory, then in global memory, then an
// all-reduce. Memory comes from a stream's pool, and the result is managed memory, which the host reads
// without a copy.
#include <thread>
#include <vector>

#include "tests/nccl_programs/check.h"

constexpr int kBins = 64;
constexpr int kCount = 20000;  // values of each GPU

__global__ void fill(unsigned* values, int count, unsigned seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = (i + seed * 7919u) * 2654435761u;
}

__global__ void count(const unsigned* values, int count, unsigned long long* bins) {
  __shared__ unsigned local[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[values[i] >> 26], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) atomicAdd(&bins[b], (unsigned long long)local[b]);
}

void keepPool(int device) {
  int pools = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device));
  REQUIRE(pools == 1, "device %d has no memory pools", device);
  cudaMemPool_t pool;
  CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
  unsigned long long threshold = ~0ull;
  CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

void work(int rank, int n, ncclUniqueId id, std::vector<unsigned long long>* result) {
  CUDA_CHECK(cudaSetDevice(rank));
  keepPool(rank);
  ncclComm_t comm;
  NCCL_CHECK(ncclCommInitRank(&comm, n, id, rank));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  unsigned long long* bins;
  CUDA_CHECK(cudaMallocManaged(&bins, kBins * sizeof *bins));
  CUDA_CHECK(cudaMemsetAsync(bins, 0, kBins * sizeof *bins, stream));
  for (int part = 0; part < 3; ++part) {
    unsigned* values;
    CUDA_CHECK(cudaMallocAsync(&values, kCount * sizeof *values, stream));
    fill<<<(kCount + 255) / 256, 256, 0, stream>>>(values, kCount, rank * 3 + part);
    count<<<4, 128, 0, stream>>>(values, kCount, bins);
    CUDA_CHECK(cudaFreeAsync(values, stream));
  }
  CUDA_CHECK(cudaGetLastError());
  NCCL_CHECK(ncclAllReduce(bins, bins, kBins, ncclUint64, ncclSum, comm, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  result->assign(bins, bins + kBins);
  CUDA_CHECK(cudaFree(bins));
  CUDA_CHECK(cudaStreamDestroy(stream));
  NCCL_CHECK(ncclCommDestroy(comm));
}

int main() {
  int n = 0;
  CUDA_CHECK(cudaGetDeviceCount(&n));
  ncclUniqueId id;
  NCCL_CHECK(ncclGetUniqueId(&id));
  std::vector<std::vector<unsigned long long>> results(n);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) threads.emplace_back(work, rank, n, id, &results[rank]);
  for (auto& thread : threads) thread.join();

  std::vector<unsigned long long> expected(kBins);
  for (unsigned seed = 0; seed < 3u * n; ++seed) {
    for (unsigned i = 0; i < kCount; ++i) ++expected[((i + seed * 7919u) * 2654435761u) >> 26];
  }
  for (int rank = 0; rank < n; ++rank) {
    for (int b = 0; b < kBins; ++b) {
      REQUIRE(results[rank][b] == expected[b], "rank %d, bin %d: %llu, expected %llu", rank, b,
              results[rank][b], expected[b]);
    }
  }
  printf("histogram: %d GPUs, %d values: exact\n", n, n * 3 * kCount);
}
