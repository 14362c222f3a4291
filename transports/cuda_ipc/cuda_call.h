// Calls of the CUDA runtime: failures in words, and what a call finds around it and has to leave there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace tutti {

/// As the CUDA runtime says it: "out of memory (cudaErrorMemoryAllocation)"; and who may be to blame, where
/// that is not the call that returned it.
std::string inWords(cudaError_t error);

/// Whether the call went well. An error is not left behind for the program's own cudaGetLastError.
bool succeeded(cudaError_t error);

/// Throws Error(ncclUnhandledCudaError, "`what`: `words`. `remedy`") unless the call went well.
void checkCuda(cudaError_t error, std::string_view what, std::string_view remedy = {});

/// Waits for the stream. Where CUDA says that this has failed, it may have been something earlier: then it
/// waits again, so that what the work uses may go.
cudaError_t synchronize(cudaStream_t stream);

/// Makes a device current in this thread for a scope. Calls that take no device work on the current one: so
/// nothing may be allocated or launched where that has failed. For threads of the program, which keep exactly
/// the device they had: giving one back that the thread never chose takes memory of that GPU. Threads of the
/// library choose theirs, and keep it.
class CurrentDevice {
 public:
  /// Throws Error.
  explicit CurrentDevice(int device);
  /// For what is given back, whatever the current device is.
  CurrentDevice(int device, std::nothrow_t unchecked) noexcept;
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = -1;  ///< -1: nothing to restore
};

/// While a stream is being captured, CUDA forbids calls such as allocations, which might have been meant to
/// be captured. In this scope they are allowed in this thread.
class RelaxedCapture {
 public:
  RelaxedCapture() : is_relaxed_(succeeded(cudaThreadExchangeStreamCaptureMode(&mode_))) {}
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() {
    if (is_relaxed_) succeeded(cudaThreadExchangeStreamCaptureMode(&mode_));
  }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool is_relaxed_;
};

/// Owners. Their functions that make one work on the current device and throw Error.
///
/// cudaDeviceReset ends what a process has on a GPU. Streams and events of then are not to be touched any
/// more, not even to be destroyed: their owners have to release() them. Memory knows by itself.
struct DeviceMemoryDeleter {
  std::uint64_t id = 0;  ///< see allocationId(): another one's address is not to be freed
  void operator()(void* memory) const noexcept;
};
/// Pages of the process, not of CUDA: they can be read after a reset.
struct PinnedMemoryDeleter {
  std::size_t bytes = 0;
  bool is_registered = true;  ///< else a reset has ended that
  void operator()(void* memory) const noexcept;
};
struct StreamDeleter {
  void operator()(cudaStream_t stream) const noexcept { succeeded(cudaStreamDestroy(stream)); }
};
struct EventDeleter {
  void operator()(cudaEvent_t event) const noexcept { succeeded(cudaEventDestroy(event)); }
};
template <class T>
using OwnedDeviceMemory = std::unique_ptr<T, DeviceMemoryDeleter>;
template <class T>
using OwnedPinnedMemory = std::unique_ptr<T, PinnedMemoryDeleter>;
using OwnedStream = std::unique_ptr<CUstream_st, StreamDeleter>;
using OwnedEvent = std::unique_ptr<CUevent_st, EventDeleter>;

/// `what`: for the message, such as "links".
OwnedDeviceMemory<std::byte> allocateDevice(
    std::size_t bytes, std::string_view what,
    std::string_view remedy = "Free memory, or lower TUTTI_SLOT_BYTES, TUTTI_SLOTS or TUTTI_LANES");
/// Lets all GPUs use host memory, until cudaHostUnregister. Throws Error.
void registerHostMemory(void* address, std::size_t bytes, std::string_view what);
/// Host memory that all GPUs can use by its address, all zero.
OwnedPinnedMemory<std::byte> allocatePinned(std::size_t bytes, std::string_view what);
/// Not ordered with the default stream.
OwnedStream makeStream();
/// Without a time.
OwnedEvent makeEvent();

}  // namespace tutti
