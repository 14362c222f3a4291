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
/// Throws where this thread may not call CUDA at all: inside a host function, or once the current device has
/// failed for good.
void requireUsable();

/// The body of an entry point that works also where no device does.
template <class Body>
cudaError_t callAnyway(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return cudaSuccess;
  } catch (...) {
    return remember(codeOfException());
  }
}

/// The body of every other entry point.
template <class Body>
cudaError_t call(Body&& body) noexcept {
  return callAnyway([&] {
    requireUsable();
    body();
  });
}

}  // namespace tutti::emulator
