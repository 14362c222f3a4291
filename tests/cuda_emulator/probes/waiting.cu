// Kernels that wait: for flags of other kernels, for other blocks, at barriers with names, for time to pass.
#include <cstdint>

namespace {

__device__ std::uint64_t acquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

__device__ void release(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

}  // namespace

/// Writes rounds of data, each once the one before was read.
extern "C" __global__ void produce(unsigned* data, std::uint64_t* posted, const std::uint64_t* credit,
                                   int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    if (threadIdx.x == 0) {
      while (acquire(credit) + 1 < static_cast<std::uint64_t>(round)) {
      }
    }
    __syncthreads();
    data[threadIdx.x] = static_cast<unsigned>(round) * 1000 + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) release(posted, static_cast<std::uint64_t>(round));
  }
}

extern "C" __global__ void consume(const unsigned* data, const std::uint64_t* posted, std::uint64_t* credit,
                                   std::uint64_t* sums, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    while (acquire(posted) < static_cast<std::uint64_t>(round)) {
    }
    sums[threadIdx.x] += data[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) release(credit, static_cast<std::uint64_t>(round));
  }
}

/// Every block waits until all blocks of the grid have come, round after round.
extern "C" __global__ void gridBarrier(unsigned* arrived, unsigned* wrong, int rounds) {
  for (unsigned round = 1; round <= static_cast<unsigned>(rounds); ++round) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1u);
      while (*static_cast<volatile unsigned*>(arrived) < round * gridDim.x) {
      }
      if (*static_cast<volatile unsigned*>(arrived) > (round + 1) * gridDim.x) atomicAdd(wrong, 1u);
    }
    __syncthreads();
  }
}

/// Half of the block feeds the other half through named barriers.
extern "C" __global__ void namedBarriers(int* out, int rounds) {
  __shared__ int slot[64];
  const int half = static_cast<int>(threadIdx.x) / 64;
  const int i = static_cast<int>(threadIdx.x) % 64;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    if (half == 0) {
      asm volatile("bar.sync 2, 128;" ::: "memory");
      slot[i] = round * 10 + i;
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
      asm volatile("bar.arrive 2, 128;" ::: "memory");
      asm volatile("bar.sync 1, 128;" ::: "memory");
      sum += slot[63 - i];
    }
  }
  if (half == 1) out[i] = sum;
}

/// Returns early in most threads; the others still meet.
extern "C" __global__ void leaveEarly(int* out, int stay) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= stay) return;
  __shared__ int shared;
  if (i == 0) shared = 41;
  __syncthreads();
  out[i] = shared + 1;
}

/// For that long, by the clock that all blocks share.
extern "C" __global__ void waitFor(std::uint64_t nanoseconds, std::uint64_t* waited) {
  std::uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(100);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
  waited[threadIdx.x] = now - begin;
}

extern "C" __global__ void barriers(int rounds) {
  for (int round = 0; round < rounds; ++round) __syncthreads();
}

extern "C" __global__ void nothing() {}
