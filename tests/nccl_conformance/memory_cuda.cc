#include <cuda_runtime.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/nccl_conformance/memory.h"

namespace conformance {
namespace {

void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code));
}

}  // namespace

int mostRanks() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

bool isSlow() { return std::getenv("TUTTI_EMULATED_GPUS") != nullptr; }

void takeDevice(int rank) { check(cudaSetDevice(rank), "cudaSetDevice"); }

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

void release(void* memory) { cudaFree(memory); }

void copyIn(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void copyOut(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

cudaStream_t openStream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  return stream;
}

void closeStream(cudaStream_t stream) { cudaStreamDestroy(stream); }
void synchronize(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

}  // namespace conformance
