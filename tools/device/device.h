// Where the buffers of a program live: host memory or a GPU's. The programs work on addresses of a Device and
// never ask which one it is; all that knows CUDA is in libtutti_programs_cuda.so (cuda_devices.cc), which is
// opened when a GPU is wanted.
//
//   auto device = devices->open(0);
//   void* data = device->allocate(bytes);
//   device->copyIn(data, from, bytes, stream);
//   ncclAllReduce(data, data, ..., stream);
//   device->synchronize(stream);
//
// A stream is what the library's calls take. Host memory has the NULL stream only: calls are done when they
// return. All methods throw Error with the driver's own words. Those of one object are called by one thread;
// each makes the device current in that thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nccl.h"

namespace tutti::device {

enum class Kind { host, cuda };

struct DeviceInfo {
  int number = 0;          ///< of a GPU in this process; 0 for host memory
  std::string place = {};  ///< a GPU's PCI address, such as 0000:3b:00; empty for host memory
  std::string name = {};   ///< of the GPU, or of the processor
  std::uint64_t free_bytes = 0;
};

/// Operations that were recorded on a stream, to be repeated.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Queues all of them once more.
  virtual void launch(cudaStream_t stream) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual Kind kind() const = 0;
  virtual DeviceInfo info() const = 0;
  /// What communicators that are made by this thread from now on use.
  virtual void makeCurrent() = 0;

  /// Aligned to 256 bytes. Freed by free(), after the work on it.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* data) noexcept = 0;

  /// Behind what is queued on the stream; done when they return.
  virtual void fill(void* to, std::uint8_t value, std::size_t bytes, cudaStream_t stream) = 0;
  virtual void copyIn(void* to, const void* from_host, std::size_t bytes, cudaStream_t stream) = 0;
  virtual void copyOut(void* to_host, const void* from, std::size_t bytes, cudaStream_t stream) = 0;

  /// A stream of its own, that waits for no other. Destroyed by destroyStream(), after its work.
  virtual cudaStream_t makeStream() = 0;
  virtual void destroyStream(cudaStream_t stream) noexcept = 0;
  /// Returns when all that is queued on the stream is done.
  virtual void synchronize(cudaStream_t stream) = 0;
  /// Whether it is done by now.
  virtual bool isDone(cudaStream_t stream) = 0;

  /// What this thread queues on the stream from here on is recorded, and not carried out. The stream is not
  /// the NULL stream. Host memory has no graphs: programs refuse to be asked for them.
  virtual void beginCapture(cudaStream_t stream) = 0;
  virtual std::unique_ptr<Graph> endCapture(cudaStream_t stream) = 0;
};

/// The devices of one kind that this process can use. Thread-safe; lives until the process ends.
class Devices {
 public:
  virtual ~Devices() = default;
  virtual Kind kind() const = 0;
  virtual int count() const = 0;
  /// `index` counts all who open one in this process: they take the devices in turn.
  virtual std::unique_ptr<Device> open(int index) const = 0;
};

Devices& hostDevices();

}  // namespace tutti::device
