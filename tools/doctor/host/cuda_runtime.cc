#include "tools/doctor/host/cuda_runtime.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace tutti::doctor {
namespace {

constexpr const char* kLibrary = "libcudart.so.13";

struct Loaded {
  CudaRuntime calls{};
  std::string problem;
};

Loaded load() {
  Loaded loaded;
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.problem = ::dlerror();
    return loaded;
  }
  const auto find = [&](auto& call, const char* name) {
    void* const symbol = ::dlsym(library, name);
    if (symbol == nullptr && loaded.problem.empty())
      loaded.problem = fmt::format("{} has no {}", kLibrary, name);
    std::memcpy(&call, &symbol, sizeof(symbol));
  };
  CudaRuntime& c = loaded.calls;
  find(c.driver_version, "cudaDriverGetVersion");
  find(c.runtime_version, "cudaRuntimeGetVersion");
  find(c.set_device, "cudaSetDevice");
  find(c.can_access_peer, "cudaDeviceCanAccessPeer");
  find(c.allocate, "cudaMalloc");
  find(c.free, "cudaFree");
  find(c.copy, "cudaMemcpy");
  find(c.get_handle, "cudaIpcGetMemHandle");
  find(c.open_handle, "cudaIpcOpenMemHandle");
  find(c.close_handle, "cudaIpcCloseMemHandle");
  find(c.error_text, "cudaGetErrorString");
  return loaded;
}

}  // namespace

const CudaRuntime* cudaRuntime(std::string* why_not) {
  static const Loaded loaded = load();
  if (loaded.problem.empty()) return &loaded.calls;
  *why_not = loaded.problem;
  return nullptr;
}

}  // namespace tutti::doctor
