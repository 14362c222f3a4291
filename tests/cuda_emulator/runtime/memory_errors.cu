// memory_errors KIND: one access that is wrong in that way. Prints the code that CUDA returns for the kernel.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include <cuda_runtime.h>

namespace {

int host_words[4];
__device__ int variable[10];
__constant__ int constants[4] = {1, 2, 3, 4};

__global__ void write(int* at, int thread) {
  if (static_cast<int>(threadIdx.x) == thread) *at = 1;
}

__global__ void readVector(uint4* out, const uint4* at) { *out = *at; }
__global__ void add(unsigned* at) { atomicAdd(at, 1U); }

__global__ void writeShared(int index, int* out) {
  __shared__ int words[32];
  words[index] = 7;
  *out = words[threadIdx.x];
}

__global__ void writeDynamicShared(int index, int* out) {
  extern __shared__ int dynamic[];
  dynamic[index] = 7;
  *out = dynamic[0];
}

__global__ void writeVariable(int index) { variable[index] = 1; }

struct Table {
  int words[8];
};

/// Touches all that a kernel may.
__global__ void touchEverything(int* device, int* managed, int* pinned, int* registered, int count,
                                const __grid_constant__ Table table, int* by_symbol) {
  const int i = static_cast<int>(threadIdx.x);
  int local[16];
  for (int k = 0; k < 16; ++k) local[k] = table.words[(i + k) % 8] + constants[k % 4];
  auto* heap = static_cast<int*>(malloc(12));
  heap[2] = local[i % 16];
  if (i == 0) device[count - 1] = managed[count - 1] = pinned[count - 1] = registered[count - 1] = heap[2];
  if (i == 1) by_symbol[9] = variable[0] = heap[2];
  free(heap);
}

template <class T>
T* allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) std::abort();
  return static_cast<T*>(memory);
}

void touchAll() {
  constexpr int kCount = 25;
  int* managed = nullptr;
  int* pinned = nullptr;
  void* by_symbol = nullptr;
  static int registered[kCount];
  cudaMallocManaged(&managed, kCount * sizeof(int));
  cudaMallocHost(&pinned, kCount * sizeof(int));
  cudaHostRegister(registered, sizeof registered, 0);
  cudaGetSymbolAddress(&by_symbol, variable);
  touchEverything<<<2, 64>>>(allocate<int>(kCount * sizeof(int)), managed, pinned, registered, kCount,
                             Table{}, static_cast<int*>(by_symbol));
}

void afterFree(bool again) {
  int* memory = allocate<int>(1000);
  cudaFree(memory);
  if (again) allocate<int>(1000);
  write<<<1, 32>>>(memory + 3, 0);
}

void afterFreeAsync() {
  void* memory = nullptr;
  cudaMallocAsync(&memory, 1000, nullptr);
  write<<<1, 32>>>(static_cast<int*>(memory), 0);
  cudaFreeAsync(memory, nullptr);
  write<<<1, 32>>>(static_cast<int*>(memory), 0);
}

void afterUnregister() {
  static int registered[64];
  cudaHostRegister(registered, sizeof registered, 0);
  write<<<1, 32>>>(registered, 0);
  cudaDeviceSynchronize();
  cudaHostUnregister(registered);
  write<<<1, 32>>>(registered, 0);
}

const std::map<std::string, std::function<void()>> kKinds{
    {"none", touchAll},
    {"past-end", [] { write<<<2, 32>>>(allocate<int>(1000) + 250, 3); }},
    {"before-begin", [] { write<<<1, 32>>>(allocate<int>(1000) - 1, 3); }},
    {"half-inside", [] { readVector<<<1, 1>>>(allocate<uint4>(16), allocate<uint4>(1000) + 62); }},
    {"atomic-past-end", [] { add<<<1, 1>>>(allocate<unsigned>(100) + 25); }},
    {"freed", [] { afterFree(false); }},
    {"freed-and-used-again", [] { afterFree(true); }},
    {"freed-async", afterFreeAsync},
    {"unregistered", afterUnregister},
    {"shared", [] { writeShared<<<1, 32>>>(32, allocate<int>(4)); }},
    {"before-shared", [] { writeShared<<<1, 32>>>(-1, allocate<int>(4)); }},
    {"dynamic-shared", [] { writeDynamicShared<<<1, 1, 40>>>(10, allocate<int>(4)); }},
    {"no-shared", [] { writeDynamicShared<<<1, 1>>>(0, allocate<int>(4)); }},
    {"null", [] { write<<<1, 32>>>(static_cast<int*>(nullptr) + 5, 0); }},
    {"host", [] { write<<<1, 32>>>(host_words, 0); }},
    {"variable", [] { writeVariable<<<1, 1>>>(10); }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto kind = argc == 2 ? kKinds.find(argv[1]) : kKinds.end();
  if (kind == kKinds.end()) return 2;
  kind->second();
  std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
