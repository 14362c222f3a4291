#include "tools/doctor/host/cuda_runtime.h"

#include "runtime/core/shared_library.h"

namespace tutti::doctor {
namespace {

struct Loaded {
  CudaRuntime calls{};
  std::string problem;
};

Loaded load() {
  Loaded loaded;
  SharedLibrary library({"libcudart.so.13"});
  CudaRuntime& c = loaded.calls;
  library.find(c.driver_version, "cudaDriverGetVersion");
  library.find(c.runtime_version, "cudaRuntimeGetVersion");
  library.find(c.set_device, "cudaSetDevice");
  library.find(c.can_access_peer, "cudaDeviceCanAccessPeer");
  library.find(c.allocate, "cudaMalloc");
  library.find(c.free, "cudaFree");
  library.find(c.copy, "cudaMemcpy");
  library.find(c.get_handle, "cudaIpcGetMemHandle");
  library.find(c.open_handle, "cudaIpcOpenMemHandle");
  library.find(c.close_handle, "cudaIpcCloseMemHandle");
  library.find(c.error_text, "cudaGetErrorString");
  loaded.problem = library.problem();
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
