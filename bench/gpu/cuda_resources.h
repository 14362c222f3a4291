// What measuring needs of CUDA, with owners; every failure throws CUDA's words.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace tutti::gpu_bench {

inline void checkCuda(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(what + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

/// An array on the GPU that is current when it is made.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    checkCuda(cudaMalloc(&data_, count * sizeof(T)),
              "cudaMalloc of " + std::to_string(count * sizeof(T)) + " bytes");
  }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return static_cast<T*>(data_); }
  std::size_t bytes() const { return count_ * sizeof(T); }
  /// Asynchronous, so that no stream of another rank is waited for.
  void fill(int value, cudaStream_t stream) const {
    checkCuda(cudaMemsetAsync(data_, value, bytes(), stream), "cudaMemsetAsync");
  }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

class Stream {
 public:
  Stream() {
    checkCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }
  void synchronize() const { checkCuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Times what a stream does between start() and stop().
class Stopwatch {
 public:
  Stopwatch() {
    checkCuda(cudaEventCreate(&start_), "cudaEventCreate");
    checkCuda(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  void start(cudaStream_t stream) { checkCuda(cudaEventRecord(start_, stream), "cudaEventRecord"); }
  /// Waits for the stream.
  double stop(cudaStream_t stream) {
    checkCuda(cudaEventRecord(stop_, stream), "cudaEventRecord");
    checkCuda(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float milliseconds = 0;
    checkCuda(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

}  // namespace tutti::gpu_bench
