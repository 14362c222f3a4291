// Prefix sums over an array that is divided among GPUs, one thread per GPU: each scans its part by warp
// shuffles, the parts' totals are gathered, and what lies before is added.
#include <thread>
#include <vector>

#include "tests/nccl_programs/check.h"

constexpr int kBlock = 256;
constexpr int kBlocks = 5;
constexpr int kCount = kBlock * kBlocks - 77;  // of each GPU

typedef long long Value;

__device__ Value scanWarp(Value value) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Value before = __shfl_up_sync(0xffffffff, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

/// Inclusive sums within blocks of kBlock, and each block's total.
__global__ void scanBlocks(const Value* in, Value* out, Value* totals) {
  __shared__ Value of_warps[kBlock / 32];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  Value value = scanWarp(i < kCount ? in[i] : 0);
  if ((threadIdx.x & 31) == 31) of_warps[threadIdx.x >> 5] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    const Value sum = scanWarp(threadIdx.x < kBlock / 32 ? of_warps[threadIdx.x] : 0);
    if (threadIdx.x < kBlock / 32) of_warps[threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= 32) value += of_warps[(threadIdx.x >> 5) - 1];
  if (i < kCount) out[i] = value;
  if (threadIdx.x == kBlock - 1) totals[blockIdx.x] = value;
}

__global__ void sum(const Value* totals, Value* result) {
  Value value = threadIdx.x < kBlocks ? totals[threadIdx.x] : 0;
  for (int mask = 16; mask > 0; mask >>= 1) value += __shfl_xor_sync(0xffffffff, value, mask);
  if (threadIdx.x == 0) *result = value;
}

/// Adds the totals of the blocks before, and of the GPUs before.
__global__ void addBefore(Value* out, const Value* blocks, const Value* gpus, int rank) {
  Value before = 0;
  for (unsigned b = 0; b < blockIdx.x; ++b) before += blocks[b];
  for (int g = 0; g < rank; ++g) before += gpus[g];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < kCount) out[i] += before;
}

Value valueOf(int rank, int i) { return (Value(rank) * kCount + i) * 1000003 % 8191 - 4000; }

void work(int rank, int n, ncclComm_t comm, std::vector<Value>* result) {
  CUDA_CHECK(cudaSetDevice(rank));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  Value *in, *out, *blocks, *gpus;
  CUDA_CHECK(cudaMallocHost(&in, kCount * sizeof(Value)));  // kernels read it where it is
  CUDA_CHECK(cudaMalloc(&out, kCount * sizeof(Value)));
  CUDA_CHECK(cudaMalloc(&blocks, kBlocks * sizeof(Value)));
  CUDA_CHECK(cudaMalloc(&gpus, n * sizeof(Value)));
  for (int i = 0; i < kCount; ++i) in[i] = valueOf(rank, i);
  Value* device_in;
  CUDA_CHECK(cudaHostGetDevicePointer(&device_in, in, 0));
  scanBlocks<<<kBlocks, kBlock, 0, stream>>>(device_in, out, blocks);
  sum<<<1, 32, 0, stream>>>(blocks, gpus + rank);
  NCCL_CHECK(ncclAllGather(gpus + rank, gpus, 1, ncclInt64, comm, stream));  // in place
  addBefore<<<kBlocks, kBlock, 0, stream>>>(out, blocks, gpus, rank);
  CUDA_CHECK(cudaGetLastError());
  result->resize(kCount);
  CUDA_CHECK(cudaMemcpyAsync(result->data(), out, kCount * sizeof(Value), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaFreeHost(in));
  for (Value* memory : {out, blocks, gpus}) CUDA_CHECK(cudaFree(memory));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

int main() {
  int n = 0;
  CUDA_CHECK(cudaGetDeviceCount(&n));
  ncclUniqueId id;
  NCCL_CHECK(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comms(n);
  NCCL_CHECK(ncclGroupStart());  // one thread makes the communicators of all
  for (int rank = 0; rank < n; ++rank) {
    CUDA_CHECK(cudaSetDevice(rank));
    NCCL_CHECK(ncclCommInitRank(&comms[rank], n, id, rank));
  }
  NCCL_CHECK(ncclGroupEnd());
  std::vector<std::vector<Value>> results(n);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) threads.emplace_back(work, rank, n, comms[rank], &results[rank]);
  for (auto& thread : threads) thread.join();
  Value expected = 0;
  for (int rank = 0; rank < n; ++rank) {
    for (int i = 0; i < kCount; ++i) {
      expected += valueOf(rank, i);
      REQUIRE(results[rank][i] == expected, "rank %d, element %d: %lld, expected %lld", rank, i,
              results[rank][i], expected);
    }
    NCCL_CHECK(ncclCommDestroy(comms[rank]));
  }
  printf("scan_threads: %d GPUs, %d elements: exact\n", n, n * kCount);
}
