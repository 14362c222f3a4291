// GPU memory and streams for tests, by CUDA's runtime.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/transfers.h"

namespace tutti::test {

inline void checkCuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Makes conformance runs work on memory of the calling thread's GPU.
inline void useGpuMemory() {
  static constexpr GpuMemory kMemory{
      .allocate =
          [](std::size_t bytes) {
            void* memory = nullptr;
            checkCuda(cudaMalloc(&memory, bytes == 0 ? 1 : bytes), "cudaMalloc");
            return memory;
          },
      .free = [](void* memory) { cudaFree(memory); },
      .copy =
          [](void* to, const void* from, std::size_t bytes) {
            // The operations of tests that use this are on the default stream.
            checkCuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
          }};
  gpu_memory = &kMemory;
}

/// An array on the current GPU.
template <class T>
class GpuArray {
 public:
  explicit GpuArray(std::size_t count) : count_(count) {
    checkCuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
  }
  explicit GpuArray(const std::vector<T>& values) : GpuArray(values.size()) { set(values); }
  GpuArray(GpuArray&& other) noexcept : count_(other.count_), data_(std::exchange(other.data_, nullptr)) {}
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;
  ~GpuArray() { cudaFree(data_); }

  T* data() const { return static_cast<T*>(data_); }
  std::size_t size() const { return count_; }
  void set(const std::vector<T>& values) const {
    checkCuda(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  /// Waits for the whole device.
  std::vector<T> get() const {
    std::vector<T> values(count_);
    checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    checkCuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  std::size_t count_;
  void* data_ = nullptr;
};

class GpuStreamOfTest {
 public:
  GpuStreamOfTest() {
    checkCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  GpuStreamOfTest(const GpuStreamOfTest&) = delete;
  GpuStreamOfTest& operator=(const GpuStreamOfTest&) = delete;
  ~GpuStreamOfTest() { cudaStreamDestroy(stream_); }

  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)
  void synchronize() const { checkCuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

inline std::vector<float> filled(std::size_t count, float value) { return std::vector<float>(count, value); }

inline void requireAll(const GpuArray<float>& array, float value, const std::string& what) {
  for (const float got : array.get()) {
    require(got == value, what + ": expected " + std::to_string(value) + ", got " + std::to_string(got));
  }
}

/// Sum of rank + 1 over all ranks.
inline float sumOfRanks(int nranks) {
  const int twice = nranks * (nranks + 1);
  return static_cast<float>(twice) / 2;
}

inline void expectRefusal(ncclResult_t result, const std::string& words) {
  require(result == ncclInvalidArgument, "refusal: " + std::string(ncclGetErrorString(result)));
  const std::string said = ncclGetLastError(nullptr);
  require(said.find(words) != std::string::npos, "expected: " + words + "\ngot: " + said);
}

/// Whether the process has a context on the GPU.
inline bool isUsed(int device) {
  void* found = nullptr;
  checkCuda(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, 12000, cudaEnableDefault),
            "cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int is_active = 0;
  const auto state = reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(found);
  require(state(device, &flags, &is_active) == CUDA_SUCCESS, "cuDevicePrimaryCtxGetState failed");
  return is_active != 0;
}

}  // namespace tutti::test
