// Gradients in buckets, all-reduced on a stream of their own while the next bucket is computed, as DDP does:
// events order the streams, a host function and a callback count what has passed, results come back to pinned
// memory.
#include <atomic>
#include <vector>

#include "tests/nccl_programs/launcher.h"

constexpr int kBuckets = 6;
constexpr int kBytes = 1 << 16;  // the largest bucket
constexpr int kCount = kBytes / int(sizeof(int));

__global__ void backward(int* bucket, int count, int rank, int which) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
    bucket[i] = i * (rank + 1) + which;
}

__global__ void average(int* bucket, int count, int nranks) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) bucket[i] /= nranks;
}

int countOf(int bucket) { return kCount - bucket * 1111; }

std::atomic<int> computed{0};
std::atomic<int> reduced{0};

void CUDART_CB countComputed(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }
void CUDART_CB countReduced(cudaStream_t, cudaError_t status, void* counter) {
  if (status == cudaSuccess) ++*static_cast<std::atomic<int>*>(counter);
}

int main(int, char** argv) {
  const Process self = joinByFile(argv[1]);  // its stream is for communication
  int least = 0, greatest = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t compute, back;
  CUDA_CHECK(cudaStreamCreateWithPriority(&compute, cudaStreamNonBlocking, greatest));
  CUDA_CHECK(cudaStreamCreateWithFlags(&back, cudaStreamNonBlocking));
  cudaEvent_t ready[kBuckets], done[kBuckets];
  int* buckets[kBuckets];
  int* results[kBuckets];
  for (int b = 0; b < kBuckets; ++b) {
    CUDA_CHECK(cudaEventCreateWithFlags(&ready[b], cudaEventDisableTiming));
    CUDA_CHECK(cudaEventCreateWithFlags(&done[b], cudaEventDisableTiming | cudaEventBlockingSync));
    NCCL_CHECK(ncclMemAlloc((void**)&buckets[b], kBytes));
    CUDA_CHECK(cudaHostAlloc(&results[b], kBytes, cudaHostAllocDefault));
  }
  void* registration = nullptr;
  NCCL_CHECK(ncclCommRegister(self.comm, buckets[0], kBytes, &registration));
  for (int round = 0; round < 2; ++round) {
    for (int b = 0; b < kBuckets; ++b) {
      backward<<<2, 64, 0, compute>>>(buckets[b], countOf(b), self.rank, b);
      CUDA_CHECK(cudaLaunchHostFunc(compute, countComputed, &computed));
      CUDA_CHECK(cudaEventRecord(ready[b], compute));
      CUDA_CHECK(cudaStreamWaitEvent(self.stream, ready[b], 0));
      NCCL_CHECK(ncclAllReduce(buckets[b], buckets[b], countOf(b), ncclInt, ncclSum, self.comm, self.stream));
      CUDA_CHECK(cudaEventRecord(done[b], self.stream));
      CUDA_CHECK(cudaStreamWaitEvent(back, done[b], 0));
      average<<<2, 64, 0, back>>>(buckets[b], countOf(b), self.nranks);
      CUDA_CHECK(
          cudaMemcpyAsync(results[b], buckets[b], countOf(b) * sizeof(int), cudaMemcpyDeviceToHost, back));
      CUDA_CHECK(cudaStreamAddCallback(back, countReduced, &reduced, 0));
    }
    cudaError_t state;
    while ((state = cudaStreamQuery(back)) == cudaErrorNotReady) usleep(1000);
    CUDA_CHECK(state);
    CUDA_CHECK(cudaEventSynchronize(done[kBuckets - 1]));
    REQUIRE(computed == (round + 1) * kBuckets && reduced == computed, "%d computed, %d reduced",
            computed.load(), reduced.load());
    for (int b = 0; b < kBuckets; ++b) {
      for (int i = 0; i < countOf(b); ++i) {
        const int expected = (i * (self.nranks * (self.nranks + 1) / 2) + b * self.nranks) / self.nranks;
        REQUIRE(results[b][i] == expected, "bucket %d, element %d: %d, expected %d", b, i, results[b][i],
                expected);
      }
    }
    // The next round's first kernels may not overwrite buckets before they are copied out.
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  NCCL_CHECK(ncclCommDeregister(self.comm, registration));
  for (int b = 0; b < kBuckets; ++b) {
    CUDA_CHECK(cudaEventDestroy(ready[b]));
    CUDA_CHECK(cudaEventDestroy(done[b]));
    NCCL_CHECK(ncclMemFree(buckets[b]));
    CUDA_CHECK(cudaFreeHost(results[b]));
  }
  CUDA_CHECK(cudaStreamDestroy(compute));
  CUDA_CHECK(cudaStreamDestroy(back));
  leave(self);
  printf("buckets: rank %d of %d: exact\n", self.rank, self.nranks);
}
