// Entry points: devices and what is asked about them.
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/device_properties.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/ipc.h"
#include "tools/cuda_emulator/runtime/memory.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

using namespace tutti::emulator;

cudaError_t cudaGetDeviceCount(int* count) {
  return callAnyway([&] {
    require(count != nullptr, cudaErrorInvalidValue);
    *count = deviceCount();
    require(*count > 0, cudaErrorNoDevice);
  });
}

cudaError_t cudaSetDevice(int index) {
  return callFor(index, [&] {
    device(index).initialize();
    threadState().device = index;
  });
}

cudaError_t cudaInitDevice(int index, unsigned /*device_flags*/, unsigned /*flags*/) {
  return callFor(index, [&] { device(index).initialize(); });
}

cudaError_t cudaGetDevice(int* index) {
  return callAnyway([&] {
    require(index != nullptr, cudaErrorInvalidValue);
    *index = currentDevice().index();
  });
}

cudaError_t cudaSetDeviceFlags(unsigned /*flags*/) {
  return callAnyway([] { currentDevice(); });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return callAnyway([&] {
    require(flags != nullptr, cudaErrorInvalidValue);
    currentDevice();
    *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
  });
}

// All are alike.
cudaError_t cudaChooseDevice(int* index, const cudaDeviceProp* properties) {
  return callAnyway([&] {
    require(index != nullptr && properties != nullptr, cudaErrorInvalidValue);
    *index = device(0).index();
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  return callAnyway([&] {
    require(properties != nullptr, cudaErrorInvalidValue);
    *properties = propertiesOf(device(index));
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int index) {
  return callAnyway([&] {
    require(value != nullptr, cudaErrorInvalidValue);
    *value = attributeOf(device(index), attribute);
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int capacity, int index) {
  return callAnyway([&] {
    const auto id = device(index).busId();
    require(text != nullptr && capacity > static_cast<int>(id.size()), cudaErrorInvalidValue);
    std::memcpy(text, id.c_str(), id.size() + 1);
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* index, const char* text) {
  return callAnyway([&] {
    require(index != nullptr && text != nullptr, cudaErrorInvalidValue);
    *index = deviceByBusId(text).index();
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call([] {
    captures().requireNoneCapturing(currentDevice());
    currentDevice().streams().synchronize();
    requireUsable();
  });
}

cudaError_t cudaDeviceReset() {
  return callAnyway([] {
    captures().requireNoneCapturing(currentDevice());
    currentDevice().streams().synchronize();
    closeImportsOf(currentDevice());
    freeAllOf(currentDevice());
    forgetHandlesOf(currentDevice());
    currentDevice().reset();
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int index, int peer) {
  return callAnyway([&] {
    require(can != nullptr, cudaErrorInvalidValue);
    *can = device(index).canAccess(device(peer)) ? 1 : 0;
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int index, int peer) {
  return callAnyway([&] {
    require(value != nullptr && index != peer, cudaErrorInvalidValue);
    const bool can = device(index).canAccess(device(peer));
    *value = can && attribute != cudaDevP2PAttrPerformanceRank ? 1 : 0;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call([&] {
    require(flags == 0, cudaErrorInvalidValue);
    currentDevice().enablePeer(device(peer));
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call([&] { currentDevice().disablePeer(device(peer)); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = kGreatestPriority;
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return call([&] {
    require(value != nullptr, cudaErrorInvalidValue);
    *value = limitOf(limit);
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t /*value*/) {
  return call([&] { limitOf(limit); });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache /*config*/) {
  return call([] {});
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return call([&] {
    require(config != nullptr, cudaErrorInvalidValue);
    *config = cudaFuncCachePreferNone;
  });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig /*config*/) {
  return call([] {});
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return call([&] {
    require(config != nullptr, cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
  });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return call([] {});
}

cudaError_t cudaDeviceGraphMemTrim(int index) {
  return call([&] { device(index); });
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget /*target*/,
                                               cudaFlushGPUDirectRDMAWritesScope /*scope*/) {
  return call([] {});
}

cudaError_t cudaDriverGetVersion(int* version) {
  return callAnyway([&] {
    require(version != nullptr, cudaErrorInvalidValue);
    *version = CUDART_VERSION;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaPeekAtLastError() {
  const auto fault = deviceCount() > 0 ? currentDevice().fault() : cudaSuccess;
  return fault != cudaSuccess ? fault : threadState().last_error;
}

cudaError_t cudaGetLastError() {
  const auto result = cudaPeekAtLastError();
  threadState().last_error = cudaSuccess;
  return result;
}

cudaError_t cudaProfilerStart() {
  return callAnyway([] {});
}

cudaError_t cudaProfilerStop() {
  return callAnyway([] {});
}
