#include "transports/cuda_ipc/cuda_call.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {

namespace {

/// What a kernel did, CUDA reports at whatever call comes next, and at all that follow.
bool isOfKernels(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string inWords(cudaError_t error) {
  return fmt::format("{} ({}){}", cudaGetErrorString(error), cudaGetErrorName(error),
                     isOfKernels(error) ? ", left by an earlier kernel, perhaps of the program itself: CUDA "
                                          "says so at every later call. compute-sanitizer finds it"
                                        : "");
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

void DeviceMemoryDeleter::operator()(void* memory) const noexcept {
  if (!isGone(memory, id)) succeeded(cudaFree(memory));
}

void PinnedMemoryDeleter::operator()(void* memory) const noexcept {
  if (is_registered) succeeded(cudaHostUnregister(memory));
  ::munmap(memory, bytes);
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
  return {static_cast<std::byte*>(memory), DeviceMemoryDeleter{.id = allocationId(memory)}};
}

/// Fails with nothing to undo: to unregister would wait for kernels, also for those that wait for a launch
/// that needs this memory.
void registerHostMemory(void* address, std::size_t bytes, std::string_view what) {
  checkCuda(cudaHostRegister(address, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
            fmt::format("cudaHostRegister of {} bytes for {}", bytes, what),
            "Host memory that GPUs use must be lockable: see the limits of the container and `ulimit -l`");
}

OwnedPinnedMemory<std::byte> allocatePinned(std::size_t bytes, std::string_view what) {
  // Shared with children: memory that is copied at the first write after fork() would no longer be the GPU's.
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    throw Error(ncclSystemError, fmt::format("mmap of {} bytes for {}: {} (errno {})", bytes, what,
                                             std::strerror(error), error));
  }
  OwnedPinnedMemory<std::byte> owned(static_cast<std::byte*>(memory),
                                     PinnedMemoryDeleter{.bytes = bytes, .is_registered = false});
  registerHostMemory(memory, bytes, what);
  owned.get_deleter().is_registered = true;
  return owned;
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
