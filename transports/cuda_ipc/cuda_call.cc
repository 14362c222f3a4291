#include "transports/cuda_ipc/cuda_call.h"

#include <fmt/format.h>

#include <cstring>

#include "tutti/error.h"

namespace tutti {

std::string inWords(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

bool succeeded(cudaError_t error) {
  if (error == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

void checkCuda(cudaError_t error, std::string_view what, std::string_view remedy) {
  if (succeeded(error)) return;
  throw Error(ncclUnhandledCudaError,
              fmt::format("{}: {}{}{}", what, inWords(error), remedy.empty() ? "" : ". ", remedy));
}

cudaError_t synchronize(cudaStream_t stream) {
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (!succeeded(error)) succeeded(cudaStreamSynchronize(stream));
  return error;
}

CurrentDevice::CurrentDevice(int device) {
  int current = -1;
  checkCuda(cudaGetDevice(&current), "cudaGetDevice");
  if (current == device) return;
  checkCuda(cudaSetDevice(device), fmt::format("cudaSetDevice({})", device));
  before_ = current;
}

CurrentDevice::CurrentDevice(int device, std::nothrow_t /*unchecked*/) noexcept {
  int current = -1;
  if (!succeeded(cudaGetDevice(&current)) || current == device) return;
  if (succeeded(cudaSetDevice(device))) before_ = current;
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) succeeded(cudaSetDevice(before_));
}

OwnedDeviceMemory<std::byte> allocateDevice(std::size_t bytes, std::string_view what,
                                            std::string_view remedy) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) {
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    succeeded(error);
    const bool is_known = succeeded(cudaMemGetInfo(&free_bytes, &all_bytes));
    if (error != cudaErrorMemoryAllocation) remedy = {};
    checkCuda(error, fmt::format("cudaMalloc of {} bytes for {}", bytes, what),
              is_known ? fmt::format("{} of {} bytes are free on this GPU. {}", free_bytes, all_bytes, remedy)
                       : std::string(remedy));
  }
  return OwnedDeviceMemory<std::byte>(static_cast<std::byte*>(memory));
}

OwnedPinnedMemory<std::byte> allocatePinned(std::size_t bytes, std::string_view what) {
  void* memory = nullptr;
  checkCuda(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
            fmt::format("cudaHostAlloc of {} bytes for {}", bytes, what));
  std::memset(memory, 0, bytes);
  return OwnedPinnedMemory<std::byte>(static_cast<std::byte*>(memory));
}

OwnedStream makeStream() {
  cudaStream_t stream = nullptr;
  checkCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return OwnedStream(stream);
}

OwnedEvent makeEvent() {
  cudaEvent_t event = nullptr;
  checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return OwnedEvent(event);
}

}  // namespace tutti
