// Entry points: copying and filling memory.
#include <cuda_runtime_api.h>

#include "tools/cuda_emulator/runtime/copy.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/program.h"

using namespace tutti::emulator;

namespace {

/// `count` bytes from `offset` of a __device__ variable. Throws cudaErrorInvalidValue where it is shorter.
std::byte* placeInVariable(const void* symbol, size_t offset, size_t count) {
  const auto place = program().variable(symbol, currentDevice());
  require(offset <= place.bytes && count <= place.bytes - offset, cudaErrorInvalidValue);
  return place.address + offset;
}

CopyRequest toVariable(const void* symbol, const void* source, size_t count, size_t offset,
                       cudaMemcpyKind kind) {
  return plainCopy(placeInVariable(symbol, offset, count), source, count, kind);
}

CopyRequest fromVariable(void* target, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  return plainCopy(target, placeInVariable(symbol, offset, count), count, kind);
}

}  // namespace

cudaError_t cudaMemcpy(void* target, const void* source, size_t count, cudaMemcpyKind kind) {
  return call([&] { copyNow(plainCopy(target, source, count, kind)); });
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call([&] { copyAsync(plainCopy(target, source, count, kind), stream); });
}

cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return call([&] { copyNow({target, source, target_pitch, source_pitch, {width, height}, kind}); });
}

cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    copyAsync({target, source, target_pitch, source_pitch, {width, height}, kind}, stream);
  });
}

cudaError_t cudaMemcpyPeer(void* target, int target_device, const void* source, int source_device,
                           size_t count) {
  return call([&] {
    copyBetween(plainCopy(target, source, count, cudaMemcpyDeviceToDevice), device(target_device),
                device(source_device));
  });
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source, int source_device,
                                size_t count, cudaStream_t stream) {
  return call([&] {
    device(target_device);
    device(source_device);
    copyAsync(plainCopy(target, source, count, cudaMemcpyDeviceToDevice), stream);
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  return call([&] { copyNow(toVariable(symbol, source, count, offset, kind)); });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] { copyAsync(toVariable(symbol, source, count, offset, kind), stream); });
}

cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind) {
  return call([&] { copyNow(fromVariable(target, symbol, count, offset, kind)); });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] { copyAsync(fromVariable(target, symbol, count, offset, kind), stream); });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call([&] {
    require(address != nullptr, cudaErrorInvalidValue);
    *address = program().variable(symbol, currentDevice()).address;
  });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return call([&] {
    require(bytes != nullptr, cudaErrorInvalidValue);
    *bytes = program().variable(symbol, currentDevice()).bytes;
  });
}

cudaError_t cudaMemset(void* target, int value, size_t count) {
  return call([&] { fillNow(target, count, value, {count, 1}); });
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t count, cudaStream_t stream) {
  return call([&] { fillAsync(target, count, value, {count, 1}, stream); });
}

cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  return call([&] { fillNow(target, pitch, value, {width, height}); });
}

cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call([&] { fillAsync(target, pitch, value, {width, height}, stream); });
}
