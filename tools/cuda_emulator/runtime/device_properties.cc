#include "tools/cuda_emulator/runtime/device_properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <iterator>

#include "tools/cuda_emulator/runtime/device_limits.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/settings.h"

namespace tutti::emulator {
namespace {

constexpr int kL2Bytes = 50 << 20;
constexpr int kBusBits = 5120;
constexpr int kClockKilohertz = 1755000;
constexpr int kMemoryClockKilohertz = 2619000;

void describeMachine(const Device& device, cudaDeviceProp& p) {
  fmt::format_to_n(p.name, sizeof(p.name) - 1, "Emulated GPU {}", device.number());
  p.uuid = device.uuid();
  p.pciDomainID = kPciDomain;
  p.pciBusID = kFirstPciBus + device.number();
  p.totalGlobalMem = settings().device_bytes;
  p.memoryBusWidth = kBusBits;
  p.l2CacheSize = kL2Bytes;
  p.asyncEngineCount = 3;
  p.unifiedAddressing = 1;
  p.canMapHostMemory = 1;
  p.managedMemory = 1;
  p.concurrentManagedAccess = 1;
  p.hostRegisterSupported = 1;
  p.canUseHostPointerForRegisteredMem = 1;
  p.streamPrioritiesSupported = 1;
  p.memoryPoolsSupported = 1;
  p.deviceNumaId = -1;
  p.hostNumaId = -1;
}

void describeKernels(cudaDeviceProp& p) {
  p.major = 9;
  p.minor = 0;
  p.multiProcessorCount = kMultiprocessors;
  p.warpSize = kWarpSize;
  p.maxThreadsPerBlock = kMaxThreadsPerBlock;
  std::copy(std::begin(kMaxBlockDimensions), std::end(kMaxBlockDimensions), p.maxThreadsDim);
  std::copy(std::begin(kMaxGridDimensions), std::end(kMaxGridDimensions), p.maxGridSize);
  p.maxThreadsPerMultiProcessor = kMaxThreadsPerMultiprocessor;
  p.maxBlocksPerMultiProcessor = kMaxBlocksPerMultiprocessor;
  p.regsPerBlock = kRegisters;
  p.regsPerMultiprocessor = kRegisters;
  p.sharedMemPerBlock = kSharedBytesPerBlock;
  p.sharedMemPerBlockOptin = kMaxSharedBytesPerBlock;
  p.sharedMemPerMultiprocessor = kSharedBytesPerMultiprocessor;
  p.reservedSharedMemPerBlock = kReservedSharedBytesPerBlock;
  p.totalConstMem = kConstantBytes;
  p.memPitch = INT_MAX;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.concurrentKernels = 1;
  p.cooperativeLaunch = 1;
}

struct AttributeField {
  cudaDeviceAttr attribute;
  int value;
};

std::vector<AttributeField> attributesFrom(const cudaDeviceProp& p) {
  return {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
      {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(p.sharedMemPerBlock)},
      {cudaDevAttrTotalConstantMemory, static_cast<int>(p.totalConstMem)},
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrMaxPitch, static_cast<int>(p.memPitch)},
      {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
      {cudaDevAttrClockRate, kClockKilohertz},
      {cudaDevAttrTextureAlignment, static_cast<int>(p.textureAlignment)},
      {cudaDevAttrGpuOverlap, 1},
      {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
      {cudaDevAttrConcurrentKernels, p.concurrentKernels},
      {cudaDevAttrPciBusId, p.pciBusID},
      {cudaDevAttrPciDeviceId, p.pciDeviceID},
      {cudaDevAttrMemoryClockRate, kMemoryClockKilohertz},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
      {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
      {cudaDevAttrPciDomainId, p.pciDomainID},
      {cudaDevAttrTexturePitchAlignment, static_cast<int>(p.texturePitchAlignment)},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, static_cast<int>(p.sharedMemPerMultiprocessor)},
      {cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor},
      {cudaDevAttrManagedMemory, p.managedMemory},
      {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem},
      {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(p.sharedMemPerBlockOptin)},
      {cudaDevAttrHostRegisterSupported, p.hostRegisterSupported},
      {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, static_cast<int>(p.reservedSharedMemPerBlock)},
      {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
      {cudaDevAttrNumaId, p.deviceNumaId},
      {cudaDevAttrHostNumaId, p.hostNumaId},
  };
}

}  // namespace

cudaDeviceProp propertiesOf(const Device& device) {
  cudaDeviceProp result{};
  describeMachine(device, result);
  describeKernels(result);
  return result;
}

int attributeOf(const Device& device, cudaDeviceAttr attribute) {
  require(attribute > 0 && attribute < cudaDevAttrMax, cudaErrorInvalidValue);
  for (const auto& field : attributesFrom(propertiesOf(device))) {
    if (field.attribute == attribute) return field.value;
  }
  return 0;
}

std::size_t limitOf(cudaLimit limit) {
  switch (limit) {
    case cudaLimitStackSize:
      return 1024;
    case cudaLimitPrintfFifoSize:
      return std::size_t{1} << 20;
    case cudaLimitMallocHeapSize:
      return std::size_t{8} << 20;
    default:
      throw CudaError(cudaErrorUnsupportedLimit);
  }
}

Device& deviceByBusId(const std::string& id) {
  // The domain may be left out, and letters be large.
  unsigned domain = kPciDomain;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  const bool whole = std::sscanf(id.c_str(), "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4;
  if (!whole) {
    domain = kPciDomain;
    require(std::sscanf(id.c_str(), "%x:%x.%x", &bus, &slot, &function) >= 2, cudaErrorInvalidValue);
  }
  for (int index = 0; index < deviceCount(); ++index) {
    if (domain == kPciDomain && bus == static_cast<unsigned>(kFirstPciBus + device(index).number())) {
      return device(index);
    }
  }
  throw CudaError(cudaErrorInvalidValue);
}

}  // namespace tutti::emulator
