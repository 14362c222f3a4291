#include "tools/cuda_emulator/runtime/error.h"

#include <cstdio>
#include <new>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/injected_faults.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {

void say(const std::string& line) { std::fputs(("cuda emulator: " + line + "\n").c_str(), stderr); }

void notEmulated(const std::string& function) {
  say(function + " is not emulated");
  throw CudaError(cudaErrorNotSupported);
}

cudaError_t codeOfException() noexcept {
  try {
    throw;
  } catch (const CudaError& error) {
    return error.code();
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (const std::exception& error) {
    say(error.what());
    return cudaErrorUnknown;
  }
}

cudaError_t remember(cudaError_t code) noexcept {
  if (code != cudaSuccess) threadState().last_error = code;
  return code;
}

void requireAllowed() {
  require(!threadState().in_host_function, cudaErrorNotPermitted);
  require(deviceCount() > 0, cudaErrorNoDevice);
  currentDevice().initialize();
}

void requireUsable() {
  requireAllowed();
  require(currentDevice().fault() == cudaSuccess, currentDevice().fault());
}

void meetInjectedFaults(const char* function) { injectedFaults().meet(function, threadState().device); }

void meetInjectedFaults(const char* function, int device) { injectedFaults().meet(function, device); }

}  // namespace tutti::emulator
