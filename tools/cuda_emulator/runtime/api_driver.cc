// Entry points: the way to driver functions, of which a few are there.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/memory_map.h"

using namespace tutti::emulator;

namespace {

// CUresult and cudaError_t have the same numbers where both have a code.
CUresult driverErrorString(CUresult code, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(code));
  return CUDA_SUCCESS;
}

CUresult driverErrorName(CUresult code, const char** text) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(code));
  return CUDA_SUCCESS;
}

CUresult driverVersion(int* version) {
  *version = CUDART_VERSION;
  return CUDA_SUCCESS;
}

CUresult addressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const auto found = memoryMap().find(reinterpret_cast<const void*>(address));
  if (!found || !found->onDevice()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = reinterpret_cast<CUdeviceptr>(found->base);
  if (bytes != nullptr) *bytes = found->bytes;
  return CUDA_SUCCESS;
}

/// Of the attributes, which allocation it is, and whether other processes can open it.
CUresult pointerAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto found = memoryMap().find(reinterpret_cast<const void*>(address));
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      if (!found) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<unsigned long long*>(data) = found->id;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      if (!found) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<int*>(data) = found->kind == MemoryKind::device ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// Whether the process has used the device.
CUresult primaryContextState(CUdevice index, unsigned* flags, int* active) {
  if (index < 0 || index >= deviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = device(index).isInitialized() ? 1 : 0;
  return CUDA_SUCCESS;
}

struct DriverFunction {
  std::string_view name;
  void* address;
};

const DriverFunction kFunctions[] = {
    {"cuGetErrorString", reinterpret_cast<void*>(driverErrorString)},
    {"cuGetErrorName", reinterpret_cast<void*>(driverErrorName)},
    {"cuDriverGetVersion", reinterpret_cast<void*>(driverVersion)},
    {"cuMemGetAddressRange", reinterpret_cast<void*>(addressRange)},
    {"cuPointerGetAttribute", reinterpret_cast<void*>(pointerAttribute)},
    {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(primaryContextState)},
};

void findFunction(std::string_view name, void** address, cudaDriverEntryPointQueryResult* status) {
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [&](const auto& function) { return function.name == name; });
  const bool known = found != std::end(kFunctions);
  *address = known ? found->address : nullptr;
  if (status != nullptr) *status = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** address, unsigned /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* status) {
  return callAnyway([&] {
    require(symbol != nullptr && address != nullptr, cudaErrorInvalidValue);
    findFunction(symbol, address, status);
  });
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** address, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, address, CUDART_VERSION, flags, status);
}
