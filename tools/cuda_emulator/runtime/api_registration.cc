// Entry points: what nvcc's host code calls when a program or library is loaded and unloaded.
#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/program.h"

namespace {

using namespace tutti::emulator;

/// The binaries by the handles that their host code got.
struct Registered {
  std::mutex mutex;
  std::map<void**, std::shared_ptr<Binary>> binaries;
};

Registered& registered() {
  static auto* const result = new Registered;
  return *result;
}

std::shared_ptr<Binary> binaryOf(void** handle) {
  const std::lock_guard lock(registered().mutex);
  return registered().binaries.at(handle);
}

}  // namespace

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper_address) {
  const auto* const wrapper = static_cast<const __fatBinC_Wrapper_t*>(wrapper_address);
  auto binary = std::make_shared<Binary>(wrapper->data);
  auto* const handle = reinterpret_cast<void**>(binary.get());
  const std::lock_guard lock(registered().mutex);
  registered().binaries.emplace(handle, std::move(binary));
  return handle;
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

char __cudaInitModule(void** /*handle*/) { return 1; }

void __cudaUnregisterFatBinary(void** handle) {
  const auto binary = binaryOf(handle);
  program().forget(binary);
  const std::lock_guard lock(registered().mutex);
  registered().binaries.erase(handle);
}

// NOLINTNEXTLINE(readability-function-size): CUDA's arguments
void __cudaRegisterFunction(void** handle, const char* host, char* /*device*/, const char* name,
                            int /*thread_limit*/, uint3* /*thread*/, uint3* /*block*/, dim3* /*block_size*/,
                            dim3* /*grid_size*/, int* /*warp_size*/) {
  program().addFunction(binaryOf(handle), host, name);
}

void __cudaRegisterVar(void** handle, char* host, char* /*device*/, const char* name, int /*external*/,
                       size_t /*bytes*/, int /*constant*/, int /*global*/) {
  program().addVariable(binaryOf(handle), host, name);
}

// Its host code follows a pointer that stays null, which ends the program there.
void __cudaRegisterManagedVar(void** /*handle*/, void** /*host*/, char* /*device*/, const char* name,
                              int /*external*/, size_t /*bytes*/, int /*constant*/, int /*global*/) {
  say(std::string("the __managed__ variable ") + name + " is not emulated; allocate it by cudaMallocManaged");
}
}  // extern "C"
