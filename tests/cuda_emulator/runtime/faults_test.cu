// Failures that are asked for: calls, devices, streams.
#include <dlfcn.h>

#include <chrono>
#include <string>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

template <class Function>
Function* emulatorFunction(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

bool emulateFaults(const char* text) {
  return emulatorFunction<bool(const char*)>("tuttiEmulateFaults")(text);
}

std::string struck() { return emulatorFunction<const char*()>("tuttiEmulateFaultsStruck")(); }

class EmulatedFaults : public testing::Test {
 protected:
  ~EmulatedFaults() override {
    emulateFaults("");
    cudaGetLastError();
    EXPECT_TRUE(ok(cudaSetDevice(0)));
  }
};

std::size_t freeBytes() {
  std::size_t free = 0;
  std::size_t all = 0;
  EXPECT_TRUE(ok(cudaMemGetInfo(&free, &all)));
  return free;
}

TEST_F(EmulatedFaults, TheCallThatWasAskedForFailsAndDoesNothing) {
  ASSERT_TRUE(emulateFaults("fail:call=cudaMalloc,at=2,error=cudaErrorMemoryAllocation"));
  const std::size_t before = freeBytes();
  EXPECT_EQ(struck(), "");
  void* memory[3] = {};
  EXPECT_TRUE(ok(cudaMalloc(&memory[0], 64)));
  EXPECT_TRUE(returned(cudaMalloc(&memory[1], 64), cudaErrorMemoryAllocation));
  EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorMemoryAllocation));
  EXPECT_EQ(struck(), "cudaMalloc");
  EXPECT_EQ(memory[1], nullptr);
  EXPECT_TRUE(ok(cudaMalloc(&memory[2], 64)));
  EXPECT_TRUE(ok(cudaFree(memory[0])));
  EXPECT_TRUE(ok(cudaFree(memory[2])));
  EXPECT_EQ(freeBytes(), before);
}

TEST_F(EmulatedFaults, EveryCallFailsWhereNoneIsNamed) {
  ASSERT_TRUE(emulateFaults("fail:call=cudaEvent*,error=cudaErrorNotSupported"));
  cudaEvent_t event = nullptr;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(returned(cudaEventCreate(&event), cudaErrorNotSupported));
  const TestStream stream;
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
}

TEST_F(EmulatedFaults, AnyCallOfThreadsOnOneDevice) {
  ASSERT_TRUE(emulateFaults("fail:device=1,at=2"));
  EXPECT_TRUE(ok(cudaStreamSynchronize(nullptr)));
  EXPECT_TRUE(ok(cudaSetDevice(1)));  // the first: it names the device
  EXPECT_TRUE(returned(cudaDeviceSynchronize(), cudaErrorUnknown));
  EXPECT_EQ(struck(), "cudaDeviceSynchronize");
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
}

TEST_F(EmulatedFaults, TheDeviceThatACallNamesCountsNotTheCurrentOne) {
  EXPECT_TRUE(ok(cudaSetDevice(1)));
  ASSERT_TRUE(emulateFaults("fail:device=1"));
  EXPECT_TRUE(ok(cudaSetDevice(0)));
  EXPECT_TRUE(returned(cudaSetDevice(1), cudaErrorUnknown));
}

TEST_F(EmulatedFaults, WhatALaunchReturns) {
  const DeviceArray<int> word(1);
  ASSERT_TRUE(emulateFaults("fail:call=cudaLaunchKernel*,at=1,error=cudaErrorLaunchOutOfResources"));
  addOne<<<1, 1>>>(word.get());
  EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorLaunchOutOfResources));
  addOne<<<1, 1>>>(word.get());
  EXPECT_TRUE(ok(cudaGetLastError()));
  EXPECT_EQ(word.read()[0], 1);
}

TEST_F(EmulatedFaults, WhatIsGivenBackIsGivenBackThoughTheCallFails) {
  const std::size_t before = freeBytes();
  void* memory = nullptr;
  ASSERT_TRUE(ok(cudaMalloc(&memory, 64)));
  ASSERT_TRUE(emulateFaults("fail:call=cudaFree"));
  EXPECT_TRUE(returned(cudaFree(memory), cudaErrorUnknown));
  EXPECT_EQ(freeBytes(), before);
}

TEST_F(EmulatedFaults, ADeviceThatBreaksEndsItsKernelsAndFailsEveryCall) {
  const SharedWord started;
  const SharedWord never;
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  storeWord<<<1, 1>>>(started.get(), 1);
  awaitWord<<<1, 32>>>(never.get(), 1);
  while (started.read() == 0) {
  }
  ASSERT_TRUE(emulateFaults("break:call=cudaStreamQuery,error=cudaErrorIllegalAddress"));
  EXPECT_TRUE(returned(cudaStreamQuery(nullptr), cudaErrorIllegalAddress));
  EXPECT_TRUE(returned(cudaStreamSynchronize(nullptr), cudaErrorIllegalAddress));
  void* memory = nullptr;
  EXPECT_TRUE(returned(cudaMalloc(&memory, 64), cudaErrorIllegalAddress));
  ASSERT_TRUE(ok(cudaSetDevice(0)));
  EXPECT_TRUE(ok(cudaMalloc(&memory, 64)));
  EXPECT_TRUE(ok(cudaFree(memory)));
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  EXPECT_TRUE(ok(cudaDeviceReset()));
  ASSERT_TRUE(ok(cudaSetDevice(0)));
}

TEST_F(EmulatedFaults, WorkOfASlowStreamIsLate) {
  const DeviceArray<int> word(1);
  ASSERT_TRUE(emulateFaults("slow:ms=30,device=0"));
  const auto start = std::chrono::steady_clock::now();
  addOne<<<1, 1>>>(word.get());
  addOne<<<1, 1>>>(word.get());
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
  EXPECT_EQ(word.read()[0], 2);
}

TEST_F(EmulatedFaults, WhatIsNotUnderstoodIsRefused) {
  for (const char* text :
       {"malloc", "fail:call=malloc", "fail:at=x", "fail:at=-1", "fail:error=cudaErrorNever", "fail:ms=5",
        "slow", "slow:at=3,ms=5", "break:every=3", "fail:at=1;;fail:at=2"}) {
    EXPECT_FALSE(emulateFaults(text)) << text;
  }
}

}  // namespace
}  // namespace tutti::test
