// How values travel: spaces, vectors, calls, tables, atomics.
#include <cstdint>

__device__ int device_counter = 5;
__device__ int* device_pointer = &device_counter;
__constant__ float table[4] = {0.5f, 1.5f, 2.5f, 3.5f};

struct Shape {
  __device__ virtual int area(int x) const { return x; }
};
struct Square : Shape {
  __device__ int area(int x) const override { return x * x; }
};

extern "C" __global__ void copyWide(uint4* to, const uint4* from, int count) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += gridDim.x * blockDim.x) {
    to[i] = from[i];
  }
}

extern "C" __global__ void copyMixed(unsigned char* to, const unsigned char* from, uint2* pairs,
                                     const ushort4* fours, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  to[i] = from[i];
  const ushort4 four = fours[i];
  pairs[i] = make_uint2(four.x | (static_cast<unsigned>(four.y) << 16), four.z * 3u + four.w);
}

/// Sum of the block's inputs, by shared memory, static and dynamic.
extern "C" __global__ void reduceBlock(int* out, const int* in) {
  __shared__ int partial[256];
  extern __shared__ int copies[];
  const int i = static_cast<int>(threadIdx.x);
  partial[i] = in[blockIdx.x * blockDim.x + i];
  copies[i] = -partial[i];
  __syncthreads();
  for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
    if (i < half) {
      partial[i] += partial[i + half];
      copies[i] += copies[i + half];
    }
    __syncthreads();
  }
  if (i == 0) {
    out[2 * blockIdx.x] = partial[0];
    out[2 * blockIdx.x + 1] = copies[0];
  }
}

struct Big {
  double scale;
  int shift[5];
  char sign;
};

__device__ __noinline__ Big changed(Big big, int by) {
  big.scale *= by;
  big.shift[by % 5] += 7;
  big.sign = static_cast<char>(-big.sign);
  return big;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ int triple(int x) { return 3 * x; }
__device__ int negate(int x) { return -x; }

/// Calls by value, by pointer, virtual, recursive; a switch that becomes a table.
extern "C" __global__ void callAround(double* out, Big big, int n) {
  const Big other = changed(big, n);
  out[0] = other.scale + other.shift[n % 5] * 1000 + other.sign * 100000;
  out[1] = fibonacci(n);
  const Shape plain;
  const Square square;
  const Shape* shape = n % 2 == 0 ? &plain : static_cast<const Shape*>(&square);
  out[2] = shape->area(n);
  int (*const functions[])(int) = {triple, negate};
  out[3] = functions[n & 1](n);
  for (int i = 0; i < 12; ++i) {
    double value = 0;
    switch ((n + i) % 10) {
      case 0:
        value = out[0];
        break;
      case 1:
        value = n * 2;
        break;
      case 2:
        value = table[i & 3];
        break;
      case 3:
        value = fibonacci(i);
        break;
      case 4:
        value = -n;
        break;
      case 5:
        value = big.shift[i % 5];
        break;
      case 6:
        value = 1.0 / n;
        break;
      case 7:
        value = out[1] + i;
        break;
      case 8:
        value = *device_pointer;
        break;
      default:
        value = 99;
        break;
    }
    out[4 + i] = value;
  }
}

/// Each thread sorts a few numbers in memory of its own.
extern "C" __global__ void sortOwn(int* out, const int* in, int each) {
  int own[16];
  const int at = static_cast<int>(threadIdx.x) * each;
  for (int i = 0; i < each; ++i) own[i] = in[at + i];
  for (int i = 0; i < each; ++i) {
    for (int j = i + 1; j < each; ++j) {
      if (own[j] < own[i]) {
        const int other = own[i];
        own[i] = own[j];
        own[j] = other;
      }
    }
  }
  for (int i = 0; i < each; ++i) out[at + i] = own[i];
}

extern "C" __global__ void setVariables(int* out) {
  out[0] = device_counter;
  device_counter = 17;
  out[1] = *device_pointer;
  out[2] = static_cast<int>(table[1] * 2);
}

/// Every atomic operation, by every thread of every block, on words of its own kind.
extern "C" __global__ void atomics(unsigned* words, unsigned long long* wide, float* single, double* real,
                                   int* lowest) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&words[0], i);
  atomicSub(&words[1], 3);
  atomicMax(&words[2], i * 2654435761u);
  atomicMin(&words[3], i * 2654435761u);
  atomicAnd(&words[4], ~(1u << (i % 32)));
  atomicOr(&words[5], 1u << (i % 31));
  atomicXor(&words[6], i);
  atomicInc(&words[7], 99);
  atomicDec(&words[8], 99);
  atomicMin(lowest, static_cast<int>(i) - 50);
  atomicAdd(wide, static_cast<unsigned long long>(i) << 32);
  atomicAdd(single, 1.0f);
  atomicAdd(real, 0.5);
  for (unsigned seen = words[9];;) {
    const unsigned before = atomicCAS(&words[9], seen, seen * 5 + 1);
    if (before == seen) break;
    seen = before;
  }
  __shared__ unsigned local;
  if (threadIdx.x == 0) local = 0;
  __syncthreads();
  atomicAdd(&local, 1u);
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&words[10], local);
  if (threadIdx.x == 0) atomicAdd(&words[11], local);
}

extern "C" __global__ void whoAmI(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned lane, warp, dynamic;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
  unsigned* own = out + 4 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
  own[0] = block * 10000 + thread;
  own[1] = lane;
  own[2] = warp;
  own[3] = dynamic;
}
