// How calls fail: inside by CudaError, at the entry points by CUDA's codes.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <string>
#include <utility>

namespace tutti::emulator {

/// What a failed call returns.
class CudaError : public std::exception {
 public:
  explicit CudaError(cudaError_t code) : code_(code) {}
  cudaError_t code() const noexcept { return code_; }
  const char* what() const noexcept override { return cudaGetErrorString(code_); }

 private:
  cudaError_t code_;
};

inline void require(bool condition, cudaError_t otherwise) {
  if (!condition) throw CudaError(otherwise);
}

/// One line on standard error: for what a program's author must know and no code of CUDA's can say.
void say(const std::string& line);

/// Says that `function` is not emulated, and throws cudaErrorNotSupported.
[[noreturn]] void notEmulated(const std::string& function);

/// The code for the exception being handled; anything but a CudaError is told in words.
cudaError_t codeOfException() noexcept;
/// Keeps a failure as this thread's last error. Returns `code`.
cudaError_t remember(cudaError_t code) noexcept;
/// Throws where this thread may not call CUDA at all: inside a host function, or where there is no device.
void requireAllowed();
/// Throws also once the current device has failed for good.
void requireUsable();
/// Throws where TUTTI_EMULATED_FAULTS makes this call fail; for the current device, or the one that it is
/// for.
void meetInjectedFaults(const char* function);
void meetInjectedFaults(const char* function, int device);

/// Where errors become codes.
template <class Body>
cudaError_t enter(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return cudaSuccess;
  } catch (...) {
    return remember(codeOfException());
  }
}

/// The body of an entry point that works also where no device does. `function`: the entry point.
template <class Body>
cudaError_t callAnyway(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  return enter([&] {
    meetInjectedFaults(function);
    body();
  });
}

/// The same where the call itself says which device it is for, whatever the current one.
template <class Body>
cudaError_t callFor(int device, Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  return enter([&] {
    meetInjectedFaults(function, device);
    body();
  });
}

/// The body of an entry point that gives something back. That is done also where the call fails, because the
/// device has failed or a test wants it: so what is left in the end was forgotten.
template <class Body>
cudaError_t release(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  return enter([&] {
    requireAllowed();
    body();
    meetInjectedFaults(function);
    requireUsable();
  });
}

/// The body of every other entry point.
template <class Body>
cudaError_t call(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  return enter([&] {
    meetInjectedFaults(function);
    requireUsable();
    body();
  });
}

}  // namespace tutti::emulator
