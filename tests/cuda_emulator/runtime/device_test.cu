// Devices, peers, errors: run with two emulated devices.
#include <cuda.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

TEST(EmulatedDevice, CountAndChoicePerThread) {
  int count = 0;
  ASSERT_TRUE(ok(cudaGetDeviceCount(&count)));
  EXPECT_EQ(count, 2);
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  int other = -1;
  std::thread([&] { EXPECT_TRUE(ok(cudaGetDevice(&other))); }).join();
  int own = -1;
  EXPECT_TRUE(ok(cudaGetDevice(&own)));
  EXPECT_EQ(own, 1);
  EXPECT_EQ(other, 0);
  EXPECT_TRUE(returned(cudaSetDevice(2), cudaErrorInvalidDevice));
  EXPECT_TRUE(returned(cudaSetDevice(-1), cudaErrorInvalidDevice));
  EXPECT_TRUE(ok(cudaSetDevice(0)));
}

TEST(EmulatedDevice, PropertiesAndAttributesAgree) {
  cudaDeviceProp properties{};
  ASSERT_TRUE(ok(cudaGetDeviceProperties(&properties, 0)));
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.warpSize, 32);
  const std::pair<cudaDeviceAttr, int> expected[] = {
      {cudaDevAttrComputeCapabilityMajor, properties.major},
      {cudaDevAttrMultiProcessorCount, properties.multiProcessorCount},
      {cudaDevAttrMaxThreadsPerBlock, properties.maxThreadsPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(properties.sharedMemPerBlockOptin)},
      {cudaDevAttrPciBusId, properties.pciBusID},
      {cudaDevAttrUnifiedAddressing, 1},
  };
  for (const auto& [attribute, value] : expected) {
    int got = -1;
    EXPECT_TRUE(ok(cudaDeviceGetAttribute(&got, attribute, 0)));
    EXPECT_EQ(got, value) << "attribute " << attribute;
  }
  int ignored = 0;
  EXPECT_TRUE(
      returned(cudaDeviceGetAttribute(&ignored, static_cast<cudaDeviceAttr>(0), 0), cudaErrorInvalidValue));
}

TEST(EmulatedDevice, IdentitiesDiffer) {
  std::set<std::string> uuids;
  for (int index = 0; index < 2; ++index) {
    cudaDeviceProp properties{};
    ASSERT_TRUE(ok(cudaGetDeviceProperties(&properties, index)));
    uuids.insert(std::string(properties.uuid.bytes, sizeof(properties.uuid.bytes)));
    char bus_id[16] = "";
    ASSERT_TRUE(ok(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index)));
    int found = -1;
    EXPECT_TRUE(ok(cudaDeviceGetByPCIBusId(&found, bus_id)));
    EXPECT_EQ(found, index);
    EXPECT_TRUE(returned(cudaDeviceGetPCIBusId(bus_id, 4, index), cudaErrorInvalidValue));
  }
  EXPECT_EQ(uuids.size(), 2u);
  int found = -1;
  EXPECT_TRUE(returned(cudaDeviceGetByPCIBusId(&found, "0000:00:00.0"), cudaErrorInvalidValue));
}

TEST(EmulatedDevice, PeerAccess) {
  int can = -1;
  EXPECT_TRUE(ok(cudaDeviceCanAccessPeer(&can, 0, 1)));
  EXPECT_EQ(can, 1);
  EXPECT_TRUE(ok(cudaDeviceCanAccessPeer(&can, 0, 0)));
  EXPECT_EQ(can, 0);
  EXPECT_TRUE(ok(cudaDeviceEnablePeerAccess(1, 0)));
  EXPECT_TRUE(returned(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled));
  EXPECT_TRUE(returned(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice));
  EXPECT_TRUE(returned(cudaDeviceEnablePeerAccess(7, 0), cudaErrorInvalidDevice));
  EXPECT_TRUE(ok(cudaDeviceDisablePeerAccess(1)));
  EXPECT_TRUE(returned(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled));
}

TEST(EmulatedDevice, LastErrorIsPerThreadAndForgottenOnceRead) {
  cudaGetLastError();
  EXPECT_TRUE(returned(cudaSetDevice(9), cudaErrorInvalidDevice));
  std::thread([] { EXPECT_TRUE(ok(cudaGetLastError())); }).join();
  EXPECT_TRUE(returned(cudaPeekAtLastError(), cudaErrorInvalidDevice));
  EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorInvalidDevice));
  EXPECT_TRUE(ok(cudaGetLastError()));
}

TEST(EmulatedDevice, ErrorNamesAndTextsAreCudas) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST(EmulatedDevice, DriverFunctions) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult status{};
  EXPECT_TRUE(ok(cudaGetDriverEntryPointByVersion("cuGetErrorString", &address, 13000, 0, &status)));
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_NE(address, nullptr);
  EXPECT_TRUE(ok(cudaGetDriverEntryPointByVersion("cuMemCreate", &address, 13000, 0, &status)));
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(address, nullptr);
}

TEST(EmulatedDevice, IsInitializedByItsFirstUse) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult status{};
  ASSERT_TRUE(
      ok(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &address, 12000, 0, &status)));
  const auto state = reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(address);
  const auto isActive = [&](int device) {
    unsigned flags = 0;
    int active = -1;
    EXPECT_EQ(state(device, &flags, &active), CUDA_SUCCESS);
    return active == 1;
  };
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  ASSERT_TRUE(ok(cudaDeviceReset()));
  EXPECT_FALSE(isActive(1));
  int current = -1;
  EXPECT_TRUE(ok(cudaGetDevice(&current)));
  EXPECT_FALSE(isActive(1));
  EXPECT_TRUE(ok(cudaFree(nullptr)));
  EXPECT_TRUE(isActive(1));
  ASSERT_TRUE(ok(cudaDeviceReset()));
  EXPECT_FALSE(isActive(1));
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  EXPECT_TRUE(isActive(1));
  ASSERT_TRUE(ok(cudaSetDevice(0)));
  unsigned flags = 0;
  EXPECT_EQ(state(7, &flags, &current), CUDA_ERROR_INVALID_DEVICE);
}

TEST(EmulatedDevice, AnAllocationHasAnIdOfItsOwn) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult status{};
  ASSERT_TRUE(ok(cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &address, 12000, 0, &status)));
  const auto attribute = reinterpret_cast<CUresult (*)(void*, CUpointer_attribute, CUdeviceptr)>(address);
  const auto idOf = [&](const void* memory) {
    unsigned long long id = 0;
    EXPECT_EQ(attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, reinterpret_cast<CUdeviceptr>(memory)),
              CUDA_SUCCESS);
    return id;
  };
  unsigned long long first = 0;
  {
    const DeviceArray<int> array(100);
    first = idOf(array.get());
    EXPECT_EQ(idOf(array.get() + 99), first);
  }
  const DeviceArray<int> array(100);  // most likely in the same place
  EXPECT_NE(idOf(array.get()), first);
}

TEST(EmulatedLaunch, ShapesThatNoDeviceAllows) {
  const DeviceArray<int> word(1);
  const auto launch = [&](dim3 grid, dim3 block, std::size_t shared_bytes) {
    storeWord<<<grid, block, shared_bytes>>>(word.get(), 7);
    return cudaGetLastError();
  };
  EXPECT_TRUE(returned(launch(0, 1, 0), cudaErrorInvalidConfiguration));
  EXPECT_TRUE(returned(launch(1, 0, 0), cudaErrorInvalidConfiguration));
  EXPECT_TRUE(returned(launch(1, 1025, 0), cudaErrorInvalidConfiguration));
  EXPECT_TRUE(returned(launch(1, dim3(1, 1, 65), 0), cudaErrorInvalidConfiguration));
  EXPECT_TRUE(returned(launch(dim3(1, 65536), 1, 0), cudaErrorInvalidConfiguration));
  EXPECT_TRUE(returned(launch(1, 1, 64 << 10), cudaErrorInvalidValue));
  EXPECT_EQ(word.read()[0], 0);
  EXPECT_TRUE(ok(cudaFuncSetAttribute(storeWord, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10)));
  EXPECT_TRUE(ok(launch(1, 1, 64 << 10)));
  EXPECT_EQ(word.read()[0], 7);
  EXPECT_TRUE(returned(cudaFuncSetAttribute(storeWord, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
                       cudaErrorInvalidValue));
  cudaGetLastError();
}

TEST(EmulatedLaunch, EveryWayToLaunch) {
  const DeviceArray<int> word(1);
  int* address = word.get();
  int value = 1;
  void* arguments[] = {&address, &value};
  const auto* const function = reinterpret_cast<const void*>(storeWord);
  EXPECT_TRUE(ok(cudaLaunchKernel(function, 1, 1, arguments, 0, nullptr)));
  EXPECT_EQ(word.read()[0], 1);
  value = 2;
  EXPECT_TRUE(ok(cudaLaunchCooperativeKernel(function, 1, 1, arguments, 0, nullptr)));
  EXPECT_EQ(word.read()[0], 2);
  value = 3;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_TRUE(ok(cudaLaunchKernelExC(&config, function, arguments)));
  EXPECT_EQ(word.read()[0], 3);
  config.gridDim = dim3(1 << 20);
  EXPECT_TRUE(
      returned(cudaLaunchKernelExC(&config, function, arguments), cudaErrorCooperativeLaunchTooLarge));
  const int nothing = 0;
  EXPECT_TRUE(
      returned(cudaLaunchKernel(&nothing, 1, 1, arguments, 0, nullptr), cudaErrorInvalidDeviceFunction));
  cudaGetLastError();
}

__global__ __launch_bounds__(64) void boundedKernel(int* word) { *word = 1; }

TEST(EmulatedLaunch, BoundsOfTheKernel) {
  const DeviceArray<int> word(1);
  cudaFuncAttributes attributes{};
  ASSERT_TRUE(ok(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(boundedKernel))));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 64);
  boundedKernel<<<1, 65>>>(word.get());
  EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorInvalidValue));
  boundedKernel<<<1, 64>>>(word.get());
  EXPECT_TRUE(ok(cudaGetLastError()));
  EXPECT_EQ(word.read()[0], 1);
}

TEST(EmulatedLaunch, StreamOfAnotherDevice) {
  const DeviceArray<int> word(1);
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  {
    const TestStream stream;
    ASSERT_TRUE(ok(cudaSetDevice(0)));
    storeWord<<<1, 1, 0, stream>>>(word.get(), 7);
    EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorInvalidResourceHandle));
    const TestEvent event;
    EXPECT_TRUE(returned(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle));
  }
  cudaGetLastError();
}

TEST(EmulatedLaunch, WhatAFunctionNeeds) {
  cudaFuncAttributes attributes{};
  ASSERT_TRUE(ok(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(storeWord))));
  EXPECT_EQ(attributes.sharedSizeBytes, 0u);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  int blocks = 0;
  ASSERT_TRUE(ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, storeWord, 1024, 0)));
  EXPECT_EQ(blocks, 2);
  ASSERT_TRUE(ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, storeWord, 32, 0)));
  EXPECT_EQ(blocks, 32);
}

}  // namespace
}  // namespace tutti::test
