// What CUDA keeps per thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace tutti::emulator {

class Stream;

/// Between a `<<<>>>` and the launch that it becomes.
struct CallConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

/// Streams that `cudaStreamPerThread` names in one thread, by device. They end with the thread.
struct PerThreadStreams {
  PerThreadStreams() = default;
  PerThreadStreams(const PerThreadStreams&) = delete;
  PerThreadStreams& operator=(const PerThreadStreams&) = delete;
  ~PerThreadStreams();
  std::map<int, std::shared_ptr<Stream>> by_device;
};

struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  bool in_host_function = false;  ///< this thread runs a host function of a stream now
  std::vector<CallConfiguration> configurations;
  PerThreadStreams streams;
};

ThreadState& threadState();

}  // namespace tutti::emulator
