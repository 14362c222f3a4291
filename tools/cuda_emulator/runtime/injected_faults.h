// Calls that fail, devices that break and streams that are slow, because a test asked for it.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::emulator {

class Device;

/// One item of TUTTI_EMULATED_FAULTS, see README.md.
struct InjectedFault {
  enum class Kind : std::uint8_t { fail, breaks, slow };

  Kind kind = Kind::fail;
  std::string call = "*";     ///< the function's name; with * at its end, what the name begins with
  std::uint64_t at = 0;       ///< the call that it strikes, counted from 1; 0: each
  std::optional<int> device;  ///< the current one of the calling thread, or the stream's; else any
  cudaError_t error = cudaErrorUnknown;
  std::chrono::milliseconds time{0};  ///< slow

  bool concerns(std::string_view function, int current_device) const;
};

/// Throws std::invalid_argument, in words.
std::vector<InjectedFault> parseInjectedFaults(std::string_view text);

/// Those of the process: what TUTTI_EMULATED_FAULTS says, until somebody else says something. Thread-safe.
class InjectedFaults {
 public:
  /// All calls are counted from here on.
  void set(std::vector<InjectedFault> faults);
  /// The function that failed last; "": none has since set().
  const char* lastStruck() const;

  /// An entry point was called, for that device. Throws the CudaError that it is to return.
  void meet(const char* function, int device_index);
  /// Waits as long as work of the device is to be late.
  void delay(const Device& device) const;

 private:
  struct Active {
    InjectedFault fault;
    std::uint64_t calls = 0;
  };
  mutable std::mutex mutex_;
  std::atomic<bool> exist_{false};
  std::vector<Active> active_;
  const char* last_struck_ = "";
};

/// Ends the process where the environment cannot be understood: a test would pass for nothing.
InjectedFaults& injectedFaults();

}  // namespace tutti::emulator

extern "C" {
/// The same as TUTTI_EMULATED_FAULTS, for the calls from here on; "": none. False, with a line on standard
/// error, where the text is not understood. For tests, which find it by dlsym.
bool tuttiEmulateFaults(const char* text);
/// The function that failed last; "": none has since.
const char* tuttiEmulateFaultsStruck();
}
