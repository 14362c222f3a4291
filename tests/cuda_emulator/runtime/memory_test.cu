// Memory: allocating, asking about it, copying.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

__device__ int device_words[4];
__constant__ int constant_word;

std::size_t freeBytes() {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  EXPECT_TRUE(ok(cudaMemGetInfo(&free_bytes, &total)));
  return free_bytes;
}

std::vector<int> counting(std::size_t count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), 1);
  return result;
}

TEST(EmulatedMemory, AllocationsAreAlignedAndCounted) {
  const auto before = freeBytes();
  void* memory = nullptr;
  ASSERT_TRUE(ok(cudaMalloc(&memory, 1000)));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
  EXPECT_EQ(freeBytes(), before - 1000);
  EXPECT_TRUE(ok(cudaFree(memory)));
  EXPECT_EQ(freeBytes(), before);
}

TEST(EmulatedMemory, OutOfMemory) {
  const auto before = freeBytes();
  void* memory = &memory;
  EXPECT_TRUE(returned(cudaMalloc(&memory, before + 1), cudaErrorMemoryAllocation));
  EXPECT_TRUE(returned(cudaMalloc(&memory, SIZE_MAX), cudaErrorMemoryAllocation));
  EXPECT_TRUE(returned(cudaMallocAsync(&memory, before + 1, nullptr), cudaErrorMemoryAllocation));
  EXPECT_EQ(freeBytes(), before);
  ASSERT_TRUE(ok(cudaMalloc(&memory, before)));  // pages are only taken when they are touched
  EXPECT_EQ(freeBytes(), 0u);
  void* more = nullptr;
  EXPECT_TRUE(returned(cudaMalloc(&more, 1), cudaErrorMemoryAllocation));
  EXPECT_TRUE(ok(cudaFree(memory)));
  EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorMemoryAllocation));
}

TEST(EmulatedMemory, FreeingWhatWasNotAllocated) {
  EXPECT_TRUE(ok(cudaFree(nullptr)));
  EXPECT_TRUE(ok(cudaFreeHost(nullptr)));
  int local = 0;
  EXPECT_TRUE(returned(cudaFree(&local), cudaErrorInvalidValue));
  void* memory = nullptr;
  ASSERT_TRUE(ok(cudaMalloc(&memory, 100)));
  EXPECT_TRUE(returned(cudaFree(static_cast<char*>(memory) + 4), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaFreeHost(memory), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaFree(memory)));
  EXPECT_TRUE(returned(cudaFree(memory), cudaErrorInvalidValue));
  cudaGetLastError();
}

cudaPointerAttributes attributesOf(const void* address) {
  cudaPointerAttributes result{};
  EXPECT_TRUE(ok(cudaPointerGetAttributes(&result, address)));
  return result;
}

TEST(EmulatedMemory, PointersAreTold) {
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  char* memory = nullptr;
  ASSERT_TRUE(ok(cudaMalloc(&memory, 100)));
  ASSERT_TRUE(ok(cudaSetDevice(0)));
  const auto interior = attributesOf(memory + 99);
  EXPECT_EQ(interior.type, cudaMemoryTypeDevice);
  EXPECT_EQ(interior.device, 1);
  EXPECT_EQ(interior.devicePointer, memory + 99);
  EXPECT_EQ(interior.hostPointer, nullptr);
  EXPECT_EQ(attributesOf(memory + 100).type, cudaMemoryTypeUnregistered);
  EXPECT_TRUE(ok(cudaFree(memory)));
  EXPECT_EQ(attributesOf(memory).type, cudaMemoryTypeUnregistered);
  int local = 0;
  EXPECT_EQ(attributesOf(&local).type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributesOf(&local).device, cudaInvalidDeviceId);
  void* managed = nullptr;
  ASSERT_TRUE(ok(cudaMallocManaged(&managed, 100)));
  EXPECT_EQ(attributesOf(managed).type, cudaMemoryTypeManaged);
  EXPECT_TRUE(ok(cudaFree(managed)));
}

TEST(EmulatedMemory, PinnedAndRegistered) {
  void* pinned = nullptr;
  ASSERT_TRUE(ok(cudaHostAlloc(&pinned, 100, cudaHostAllocPortable)));
  EXPECT_EQ(attributesOf(pinned).type, cudaMemoryTypeHost);
  void* on_device = nullptr;
  EXPECT_TRUE(ok(cudaHostGetDevicePointer(&on_device, pinned, 0)));
  EXPECT_EQ(on_device, pinned);
  EXPECT_TRUE(returned(cudaFree(pinned), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaFreeHost(pinned)));

  std::vector<int> own(1000);
  const auto bytes = own.size() * sizeof(int);
  EXPECT_TRUE(returned(cudaHostGetDevicePointer(&on_device, own.data(), 0), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaHostRegister(own.data(), bytes, cudaHostRegisterMapped)));
  EXPECT_TRUE(returned(cudaHostRegister(own.data() + 10, 40, 0), cudaErrorHostMemoryAlreadyRegistered));
  EXPECT_EQ(attributesOf(own.data() + 10).type, cudaMemoryTypeHost);
  EXPECT_TRUE(ok(cudaHostUnregister(own.data())));
  EXPECT_TRUE(returned(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered));
  cudaGetLastError();
}

TEST(EmulatedMemory, CopiesOfEveryKind) {
  const auto values = counting(1000);
  const auto bytes = values.size() * sizeof(int);
  const DeviceArray<int> first(1000);
  const DeviceArray<int> second(1000);
  ASSERT_TRUE(ok(cudaMemcpy(first.get(), values.data(), bytes, cudaMemcpyHostToDevice)));
  ASSERT_TRUE(ok(cudaMemcpy(second.get(), first.get(), bytes, cudaMemcpyDeviceToDevice)));
  EXPECT_EQ(second.read(), values);
  std::vector<int> result(1000);
  ASSERT_TRUE(ok(cudaMemcpy(result.data(), values.data(), bytes, cudaMemcpyHostToHost)));
  EXPECT_EQ(result, values);
  ASSERT_TRUE(ok(cudaMemset(second.get(), 0xff, bytes / 2)));
  ASSERT_TRUE(ok(cudaMemcpyPeer(first.get(), 0, second.get(), 1, bytes)));
  EXPECT_EQ(first.read()[499], -1);
  EXPECT_EQ(first.read()[500], 501);
}

TEST(EmulatedMemory, CopiesAreChecked) {
  const DeviceArray<int> memory(10);
  std::vector<int> host(100);
  const auto copy = [&](void* target, const void* source, std::size_t bytes, int kind) {
    return cudaMemcpy(target, source, bytes, static_cast<cudaMemcpyKind>(kind));
  };
  EXPECT_TRUE(returned(copy(memory.get(), host.data(), 44, cudaMemcpyHostToDevice), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(copy(host.data(), memory.get() + 1, 40, cudaMemcpyDefault), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(copy(host.data(), memory.get(), 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(copy(memory.get(), memory.get(), 40, cudaMemcpyDeviceToHost), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(copy(host.data(), memory.get(), 40, 77), cudaErrorInvalidMemcpyDirection));
  EXPECT_TRUE(returned(copy(nullptr, memory.get(), 40, cudaMemcpyDefault), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(copy(host.data(), nullptr, 0, cudaMemcpyDefault)));
  cudaGetLastError();
}

TEST(EmulatedMemory, Rows) {
  // 3 rows of 4 words: device rows are 6 words apart, host rows 5.
  const DeviceArray<int> memory(18);
  const auto values = counting(15);
  ASSERT_TRUE(ok(cudaMemcpy2D(memory.get(), 24, values.data(), 20, 16, 3, cudaMemcpyHostToDevice)));
  EXPECT_EQ(memory.read(), (std::vector<int>{1, 2, 3, 4, 0, 0, 6, 7, 8, 9, 0, 0, 11, 12, 13, 14, 0, 0}));
  EXPECT_TRUE(returned(cudaMemcpy2D(memory.get(), 12, values.data(), 20, 16, 3, cudaMemcpyHostToDevice),
                       cudaErrorInvalidPitchValue));
  cudaGetLastError();
}

TEST(EmulatedMemory, PageableMemoryMayChangeAfterTheCall) {
  const SharedWord gate;
  const TestStream stream;
  const DeviceArray<int> memory(4);
  auto values = counting(4);
  awaitWord<<<1, 1, 0, stream>>>(gate.get(), 1);
  ASSERT_TRUE(ok(cudaMemcpyAsync(memory.get(), values.data(), 16, cudaMemcpyHostToDevice, stream)));
  values.assign(4, -1);
  gate.write(1);
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(memory.read(), counting(4));
}

TEST(EmulatedMemory, StreamOrdered) {
  const auto before = freeBytes();
  const TestStream stream;
  int* memory = nullptr;
  ASSERT_TRUE(ok(cudaMallocAsync(&memory, 4, stream)));
  storeWord<<<1, 1, 0, stream>>>(memory, 5);
  int value = 0;
  ASSERT_TRUE(ok(cudaMemcpyAsync(&value, memory, 4, cudaMemcpyDeviceToHost, stream)));
  EXPECT_EQ(value, 5);
  cudaIpcMemHandle_t handle{};
  EXPECT_TRUE(returned(cudaIpcGetMemHandle(&handle, memory), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaFreeAsync(memory, stream)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(freeBytes(), before);
  EXPECT_TRUE(returned(cudaFreeAsync(memory, stream), cudaErrorInvalidValue));
  cudaGetLastError();
}

__global__ void sumVariables(int* result) {
  *result = constant_word + device_words[0] + device_words[1] + device_words[2] + device_words[3];
}

TEST(EmulatedMemory, Variables) {
  const int values[] = {10, 20, 30};
  const int seven = 7;
  ASSERT_TRUE(ok(cudaMemcpyToSymbol(device_words, values, 12, 4)));
  ASSERT_TRUE(ok(cudaMemcpyToSymbol(constant_word, &seven, 4)));
  const DeviceArray<int> result(1);
  sumVariables<<<1, 1>>>(result.get());
  EXPECT_EQ(result.read()[0], 67);
  int last = 0;
  ASSERT_TRUE(ok(cudaMemcpyFromSymbol(&last, device_words, 4, 12)));
  EXPECT_EQ(last, 30);
  std::size_t bytes = 0;
  EXPECT_TRUE(ok(cudaGetSymbolSize(&bytes, device_words)));
  EXPECT_EQ(bytes, 16u);
  void* address = nullptr;
  ASSERT_TRUE(ok(cudaGetSymbolAddress(&address, device_words)));
  EXPECT_EQ(attributesOf(address).type, cudaMemoryTypeDevice);
  EXPECT_TRUE(returned(cudaMemcpyToSymbol(device_words, values, 12, 8), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaMemcpyToSymbol(seven, values, 4), cudaErrorInvalidSymbol));
  cudaGetLastError();
}

TEST(EmulatedMemory, EachDeviceHasItsOwnVariables) {
  for (int device = 0; device < 2; ++device) {
    const int value = 100 + device;
    ASSERT_TRUE(ok(cudaSetDevice(device)));
    ASSERT_TRUE(ok(cudaMemcpyToSymbol(device_words, &value, 4)));
  }
  for (int device = 0; device < 2; ++device) {
    int value = 0;
    ASSERT_TRUE(ok(cudaSetDevice(device)));
    ASSERT_TRUE(ok(cudaMemcpyFromSymbol(&value, device_words, 4)));
    EXPECT_EQ(value, 100 + device);
  }
  ASSERT_TRUE(ok(cudaSetDevice(0)));
}

TEST(EmulatedMemory, OwnHandlesCannotBeOpened) {
  const DeviceArray<int> memory(1);
  cudaIpcMemHandle_t handle{};
  ASSERT_TRUE(ok(cudaIpcGetMemHandle(&handle, memory.get())));
  void* opened = nullptr;
  EXPECT_TRUE(returned(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
                       cudaErrorDeviceUninitialized));
  EXPECT_TRUE(returned(cudaIpcOpenMemHandle(&opened, handle, 0), cudaErrorInvalidValue));
  EXPECT_TRUE(
      returned(cudaIpcOpenMemHandle(&opened, {}, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaIpcCloseMemHandle(memory.get()), cudaErrorInvalidValue));
  int local = 0;
  EXPECT_TRUE(returned(cudaIpcGetMemHandle(&handle, &local), cudaErrorInvalidValue));
  cudaGetLastError();
}

}  // namespace
}  // namespace tutti::test
