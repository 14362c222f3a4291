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

/// A load of `width` bytes by the instruction of that space.
#define TUTTI_LOAD(space, address, width)                                                            \
  do {                                                                                               \
    const auto at = static_cast<unsigned long long>(address);                                        \
    if (width == 2) asm volatile("{ .reg .b16 a; ld" space ".b16 a, [%0]; }" ::"l"(at));             \
    if (width == 4) asm volatile("{ .reg .b32 a; ld" space ".b32 a, [%0]; }" ::"l"(at));             \
    if (width == 8) asm volatile("{ .reg .b32 a, b; ld" space ".v2.b32 {a, b}, [%0]; }" ::"l"(at));  \
    if (width == 16) asm volatile("{ .reg .b64 a, b; ld" space ".v2.b64 {a, b}, [%0]; }" ::"l"(at)); \
  } while (false)

/// Loads from `offset` within memory of the space: 0 global, 1 shared, 2 local, 3 to 5 the same by generic
/// addresses.
extern "C" __global__ void misalignedIn(int space, int width, int offset, char* global) {
  alignas(16) __shared__ char shared[64];
  alignas(16) char local[64];
  for (int i = 0; i < 64; ++i) shared[i] = local[i] = global[i];
  char* const places[] = {global, shared, local};
  const char* generic = places[space % 3] + offset;
  if (space == 0) {
    TUTTI_LOAD(".global", __cvta_generic_to_global(generic), width);
  } else if (space == 1) {
    TUTTI_LOAD(".shared", __cvta_generic_to_shared(generic), width);
  } else if (space == 2) {
    TUTTI_LOAD(".local", __cvta_generic_to_local(generic), width);
  } else {
    TUTTI_LOAD("", reinterpret_cast<unsigned long long>(generic), width);
  }
}

/// Stores and atomic operations of 4 and 8 bytes.
extern "C" __global__ void misalignedUpdate(int kind, char* at) {
  if (kind == 0) *reinterpret_cast<unsigned*>(at) = 1;
  if (kind == 1) *reinterpret_cast<uint2*>(at) = make_uint2(1, 2);
  if (kind == 2) atomicAdd(reinterpret_cast<unsigned*>(at), 1U);
  if (kind == 3) atomicCAS(reinterpret_cast<unsigned long long*>(at), 0ULL, 1ULL);
  if (kind == 4) *reinterpret_cast<volatile unsigned*>(at) = 1;
}
