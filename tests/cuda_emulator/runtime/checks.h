// What the tests of the emulated CUDA runtime share. They are CUDA programs, compiled by nvcc.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tutti::test {

/// GoogleTest's == with CUDA's name of the code.
inline testing::AssertionResult returned(cudaError_t got, cudaError_t expected) {
  if (got == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "returned " << cudaGetErrorName(got) << ", expected "
                                     << cudaGetErrorName(expected);
}

inline testing::AssertionResult ok(cudaError_t got) { return returned(got, cudaSuccess); }

/// Device memory that goes with the object.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    EXPECT_TRUE(ok(cudaMalloc(&data_, count * sizeof(T))));
    EXPECT_TRUE(ok(cudaMemset(data_, 0, count * sizeof(T))));
    EXPECT_TRUE(ok(cudaDeviceSynchronize()));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { EXPECT_TRUE(ok(cudaFree(data_))); }

  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> result(count_);
    EXPECT_TRUE(ok(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost)));
    return result;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_TRUE(ok(cudaStreamCreateWithFlags(&stream_, flags)));
  }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  ~TestStream() { EXPECT_TRUE(ok(cudaStreamDestroy(stream_))); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  explicit TestEvent(unsigned flags = cudaEventDefault) {
    EXPECT_TRUE(ok(cudaEventCreateWithFlags(&event_, flags)));
  }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  ~TestEvent() { EXPECT_TRUE(ok(cudaEventDestroy(event_))); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// A word that the host and kernels see.
class SharedWord {
 public:
  SharedWord() {
    EXPECT_TRUE(ok(cudaHostAlloc(&word_, sizeof(int), cudaHostAllocMapped)));
    *word_ = 0;
  }
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;
  ~SharedWord() { EXPECT_TRUE(ok(cudaFreeHost(word_))); }

  int* get() const { return word_; }
  int read() const { return __atomic_load_n(word_, __ATOMIC_ACQUIRE); }
  void write(int value) const { __atomic_store_n(word_, value, __ATOMIC_RELEASE); }

 private:
  int* word_ = nullptr;
};

}  // namespace tutti::test
