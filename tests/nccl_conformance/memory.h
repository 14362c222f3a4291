// The one seam of the suite: where buffers live and what streams are. memory_host.cc: host memory, and no
// streams, so that a call is done when it returns. memory_cuda.cc: memory and streams of CUDA.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <utility>

namespace conformance {

/// How many ranks this process can be at once. On GPUs each takes one of its own.
int mostRanks();
/// Whether a test is to take few steps, because each is slow.
bool isSlow();
/// The calling thread works for this rank from here on.
void takeDevice(int rank);

void* allocate(std::size_t bytes);
void release(void* memory);
/// Return when the bytes are copied.
void copyIn(void* to, const void* from, std::size_t bytes);
void copyOut(void* to, const void* from, std::size_t bytes);

cudaStream_t openStream();
void closeStream(cudaStream_t stream);  ///< not of NULL
void synchronize(cudaStream_t stream);

/// Memory that collectives can work on.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : memory_(static_cast<std::byte*>(allocate(bytes))) {}
  Buffer(Buffer&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (memory_ != nullptr) release(memory_);
  }
  std::byte* at(std::size_t offset = 0) const { return memory_ + offset; }

 private:
  std::byte* memory_;
};

class Stream {
 public:
  Stream() : stream_(openStream()) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) closeStream(stream_);
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { conformance::synchronize(stream_); }

 private:
  cudaStream_t stream_;
};

}  // namespace conformance
