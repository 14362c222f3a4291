// Mistakes that a GPU reports, or should.
#include <cassert>

extern "C" __global__ void misaligned(unsigned long long* out, const char* in) {
  if (threadIdx.x == 3) out[0] = *reinterpret_cast<const unsigned long long*>(in);
}

extern "C" __global__ void misalignedVector(uint4* out, const char* in) {
  *out = *reinterpret_cast<const uint4*>(in);
}

extern "C" __global__ void trapped(int at) {
  if (static_cast<int>(threadIdx.x) == at) __trap();
  __syncthreads();
}

extern "C" __global__ void asserted(int x) { assert(x == 3); }

/// Half of the block waits at another barrier than the other.
extern "C" __global__ void deadlock() {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");
  }
}

/// Lane 0 waits for the others, which wait for nobody and do not come.
extern "C" __global__ void warpDeadlock() {
  if (threadIdx.x == 0) {
    __syncwarp(3);
  } else if (threadIdx.x == 1) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
  }
}

/// One block fails, the others wait for a flag that never comes.
extern "C" __global__ void oneFails(volatile int* flag) {
  if (blockIdx.x == 2) __trap();
  while (*flag == 0) {
  }
}

extern "C" __global__ void wild(int* nowhere) {
  __syncthreads();
  if (threadIdx.x == 7) nowhere[5] = 1;
  __syncthreads();
}

namespace {

__device__ __noinline__ int deep(int n, const int* end) {
  int own[64];
  for (int i = 0; i < 64; ++i) own[i] = n + i;
  return n == *end ? own[n & 63] : deep(n + 1, end) + own[n & 63];
}

}  // namespace

extern "C" __global__ void recursion(int* out, const int* end) { *out = deep(0, end); }
