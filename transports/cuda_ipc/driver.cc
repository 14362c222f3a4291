#include "transports/cuda_ipc/driver.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <bit>

#include "transports/cuda_ipc/cuda_call.h"

namespace tutti {
namespace {

/// Each as the driver names it, in the version that its type here has.
struct DriverFunctions {
  CUresult (*memGetAddressRange)(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) = nullptr;
  CUresult (*pointerGetAttribute)(void* data, CUpointer_attribute attribute, CUdeviceptr address) = nullptr;
  CUresult (*deviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice device) = nullptr;
  CUresult (*memGetHandleForAddressRange)(void* handle, CUdeviceptr address, std::size_t bytes,
                                          CUmemRangeHandleType type, unsigned long long flags) = nullptr;
  CUresult (*getErrorString)(CUresult error, const char** text) = nullptr;
};

template <class Function>
void find(const char* name, Function& function) {
  constexpr unsigned int kVersion = 12000;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (succeeded(cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result)) &&
      result == cudaDriverEntryPointSuccess) {
    function = reinterpret_cast<Function>(found);
  }
}

const DriverFunctions& driver() {
  static const DriverFunctions kFunctions = [] {
    DriverFunctions functions;
    find("cuMemGetAddressRange", functions.memGetAddressRange);
    find("cuPointerGetAttribute", functions.pointerGetAttribute);
    find("cuDeviceGetAttribute", functions.deviceGetAttribute);
    find("cuMemGetHandleForAddressRange", functions.memGetHandleForAddressRange);
    find("cuGetErrorString", functions.getErrorString);
    return functions;
  }();
  return kFunctions;
}

}  // namespace

std::optional<DriverAllocation> askDriver(const void* address) {
  const DriverFunctions& functions = driver();
  if (functions.memGetAddressRange == nullptr || functions.pointerGetAttribute == nullptr) return {};
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  CUdeviceptr base = 0;
  DriverAllocation found;
  if (functions.memGetAddressRange(&base, &found.bytes, at) != CUDA_SUCCESS) return {};
  found.base = std::bit_cast<std::byte*>(base);
  int has_ipc = 0;
  found.has_ipc = functions.pointerGetAttribute(&has_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                                at) == CUDA_SUCCESS &&
                  has_ipc != 0;
  return found;
}

std::uint64_t allocationId(const void* address) {
  const DriverFunctions& functions = driver();
  if (functions.pointerGetAttribute == nullptr) return 0;
  unsigned long long id = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  if (functions.pointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at) != CUDA_SUCCESS) return 0;
  return id;
}

bool isGone(const void* address, std::uint64_t id) {
  const DriverFunctions& functions = driver();
  if (functions.pointerGetAttribute == nullptr || id == 0) return false;
  unsigned long long now = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  const CUresult error = functions.pointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
  if (error == CUDA_SUCCESS) return now != id;
  // What a broken GPU answers tells nothing about the memory.
  return error == CUDA_ERROR_INVALID_VALUE || error == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

UniqueFd exportDmaBuf(int device, const void* address, std::size_t bytes, std::string* why_not) {
  const DriverFunctions& functions = driver();
  if (functions.deviceGetAttribute == nullptr || functions.memGetHandleForAddressRange == nullptr) {
    *why_not = "the driver has no cuMemGetHandleForAddressRange";
    return {};
  }
  int is_supported = 0;
  functions.deviceGetAttribute(&is_supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device);
  if (is_supported == 0) {
    *why_not = "the GPU's driver has none (the open kernel modules do)";
    return {};
  }
  int fd = -1;
  const CUresult error = functions.memGetHandleForAddressRange(&fd, reinterpret_cast<CUdeviceptr>(address),
                                                               bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (error == CUDA_SUCCESS) return UniqueFd(fd);
  const char* text = nullptr;
  if (functions.getErrorString != nullptr) functions.getErrorString(error, &text);
  *why_not = fmt::format("cuMemGetHandleForAddressRange: {} ({})", text == nullptr ? "error" : text,
                         static_cast<int>(error));
  return {};
}

}  // namespace tutti
