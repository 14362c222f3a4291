// Multiplies two tiles on tensor cores, which are not emulated; before that, allocates an array, which is not
// either.
#include <mma.h>

#include <cuda_fp16.h>

#include <cstdio>

__managed__ int managed_word;

__global__ void onTensorCores(const __half* a, const __half* b, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  managed_word = 1;
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

int main() {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc floats{32, 0, 0, 0, cudaChannelFormatKindFloat};
  std::printf("array: %s\n", cudaGetErrorName(cudaMallocArray(&array, &floats, 16, 16)));
  std::printf("kept: %s\n", cudaGetErrorName(cudaGetLastError()));
  __half* memory = nullptr;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 2;
  onTensorCores<<<1, 32>>>(memory, memory, reinterpret_cast<float*>(memory));
  std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
  return 0;
}
