// Functions that programs call by the way: pools, boxes of memory, advice, nodes of graphs made by hand, and
// those that are there only to be refused.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

std::uint64_t numberOf(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  std::uint64_t value = ~0ULL;
  EXPECT_TRUE(ok(cudaMemPoolGetAttribute(pool, attribute, &value)));
  return value;
}

cudaMemPool_t makePool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, device};
  cudaMemPool_t pool = nullptr;
  EXPECT_TRUE(ok(cudaMemPoolCreate(&pool, &properties)));
  return pool;
}

TEST(EmulatedSurface, PoolsCountWhatWasTakenFromThem) {
  cudaMemPool_t own = nullptr;
  ASSERT_TRUE(ok(cudaDeviceGetDefaultMemPool(&own, 0)));
  std::uint64_t threshold = 1 << 20;
  EXPECT_TRUE(ok(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold)));
  EXPECT_EQ(numberOf(own, cudaMemPoolAttrReleaseThreshold), threshold);
  const auto pool = makePool(0);
  EXPECT_EQ(numberOf(pool, cudaMemPoolAttrReleaseThreshold), 0u);
  const TestStream stream;
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_TRUE(ok(cudaMallocFromPoolAsync(&first, 1000, pool, stream)));
  ASSERT_TRUE(ok(cudaDeviceSetMemPool(0, pool)));
  ASSERT_TRUE(ok(cudaMallocAsync(&second, 500, stream)));
  EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemCurrent), 1500u);
  EXPECT_EQ(numberOf(own, cudaMemPoolAttrUsedMemCurrent), 0u);
  EXPECT_TRUE(ok(cudaFreeAsync(first, stream)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemCurrent), 500u);
  EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemHigh), 1500u);

  EXPECT_TRUE(ok(cudaMemPoolDestroy(pool)));  // the device takes its own again; what was allocated stays
  cudaMemPool_t now = nullptr;
  EXPECT_TRUE(ok(cudaDeviceGetMemPool(&now, 0)));
  EXPECT_EQ(now, own);
  EXPECT_TRUE(ok(cudaMemsetAsync(second, 1, 500, stream)));
  EXPECT_TRUE(ok(cudaFreeAsync(second, stream)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_TRUE(returned(cudaMemPoolDestroy(pool), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaMemPoolDestroy(own), cudaErrorInvalidValue));
  const auto others = makePool(1);
  EXPECT_TRUE(returned(cudaDeviceSetMemPool(0, others), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaMemPoolDestroy(others)));
  cudaGetLastError();
}

TEST(EmulatedSurface, BoxesOfMemory) {
  const cudaExtent extent{10, 3, 2};  // bytes, rows, slices
  cudaPitchedPtr box{};
  ASSERT_TRUE(ok(cudaMalloc3D(&box, extent)));
  EXPECT_GE(box.pitch, 10u);
  EXPECT_TRUE(ok(cudaMemset3D(box, 7, extent)));
  std::vector<char> host(4 * 3 * 1);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<char>(i);
  cudaMemcpy3DParms part{};  // 4 bytes of 3 rows into slice 1, from byte 5 on
  part.srcPtr = {host.data(), 4, 4, 3};
  part.dstPtr = box;
  part.dstPos = {5, 0, 1};
  part.extent = {4, 3, 1};
  part.kind = cudaMemcpyHostToDevice;
  EXPECT_TRUE(ok(cudaMemcpy3D(&part)));
  std::vector<char> all(10 * 3 * 2);
  cudaMemcpy3DParms back{};
  back.srcPtr = box;
  back.dstPtr = {all.data(), 10, 10, 3};
  back.extent = extent;
  back.kind = cudaMemcpyDeviceToHost;
  const TestStream stream;
  EXPECT_TRUE(ok(cudaMemcpy3DAsync(&back, stream)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
  for (std::size_t slice = 0; slice < 2; ++slice) {
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t at = 0; at < 10; ++at) {
        const bool copied = slice == 1 && at >= 5 && at < 9;
        EXPECT_EQ(all[(slice * 3 + row) * 10 + at], copied ? host[row * 4 + at - 5] : 7)
            << slice << row << at;
      }
    }
  }
  back.extent.height = 4;  // beyond the box
  back.extent.depth = 3;
  EXPECT_TRUE(returned(cudaMemcpy3D(&back), cudaErrorInvalidValue));
  cudaGetLastError();
  EXPECT_TRUE(ok(cudaFree(box.ptr)));
}

TEST(EmulatedSurface, NodesMadeByHand) {
  DeviceArray<int> words(6);
  const int source[2] = {11, 12};
  DeviceArray<int> from(2);
  ASSERT_TRUE(ok(cudaMemcpy(from.get(), source, sizeof source, cudaMemcpyHostToDevice)));
  cudaGraph_t graph = nullptr;
  ASSERT_TRUE(ok(cudaGraphCreate(&graph, 0)));
  cudaMemsetParams fill{};
  fill.dst = words.get();
  fill.elementSize = 4;
  fill.value = 0x01020304;
  fill.width = 6;
  fill.height = 1;
  cudaGraphNode_t filled = nullptr;
  cudaGraphNode_t copied = nullptr;
  cudaGraphNode_t recorded = nullptr;
  ASSERT_TRUE(ok(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill)));
  ASSERT_TRUE(ok(cudaGraphAddMemcpyNode1D(&copied, graph, &filled, 1, words.get() + 2, from.get(),
                                          2 * sizeof(int), cudaMemcpyDeviceToDevice)));
  const TestEvent event;
  ASSERT_TRUE(ok(cudaGraphAddEventRecordNode(&recorded, graph, &copied, 1, event)));
  fill.elementSize = 3;
  EXPECT_TRUE(returned(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill), cudaErrorInvalidValue));
  cudaGetLastError();
  cudaGraphInstantiateParams params{};
  cudaGraphExec_t executable = nullptr;
  ASSERT_TRUE(ok(cudaGraphInstantiateWithParams(&executable, graph, &params)));
  EXPECT_EQ(params.result_out, cudaGraphInstantiateSuccess);
  const TestStream stream;
  EXPECT_TRUE(ok(cudaGraphLaunch(executable, stream)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_TRUE(ok(cudaEventQuery(event)));
  EXPECT_EQ(words.read(), (std::vector<int>{0x01020304, 0x01020304, 11, 12, 0x01020304, 0x01020304}));
  EXPECT_TRUE(ok(cudaGraphExecDestroy(executable)));
  EXPECT_TRUE(ok(cudaGraphDestroy(graph)));
}

TEST(EmulatedSurface, AdviceIsForManagedMemory) {
  int* managed = nullptr;
  ASSERT_TRUE(ok(cudaMallocManaged(&managed, 4096)));
  const DeviceArray<int> plain(4);
  const cudaMemLocation here{cudaMemLocationTypeDevice, 0};
  const cudaMemLocation nowhere{cudaMemLocationTypeDevice, 99};
  EXPECT_TRUE(ok(cudaMemPrefetchAsync(managed, 4096, here, 0, nullptr)));
  EXPECT_TRUE(ok(cudaMemPrefetchAsync(managed, 64, {cudaMemLocationTypeHost, 0}, 0, nullptr)));
  EXPECT_TRUE(ok(cudaMemAdvise(managed, 4096, cudaMemAdviseSetReadMostly, here)));
  EXPECT_TRUE(returned(cudaMemPrefetchAsync(managed, 4097, here, 0, nullptr), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaMemPrefetchAsync(managed, 4096, nowhere, 0, nullptr), cudaErrorInvalidDevice));
  EXPECT_TRUE(
      returned(cudaMemAdvise(plain.get(), 4, cudaMemAdviseSetReadMostly, here), cudaErrorInvalidValue));
  cudaGetLastError();
  EXPECT_TRUE(ok(cudaFree(managed)));
}

TEST(EmulatedSurface, SmallQuestions) {
  const char* name = nullptr;
  EXPECT_TRUE(ok(cudaFuncGetName(&name, reinterpret_cast<const void*>(storeWord))));
  EXPECT_NE(std::string(name).find("storeWord"), std::string::npos);
  std::size_t bytes = 0;
  EXPECT_TRUE(ok(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, storeWord, 2, 128)));
  // Two blocks share 228 KiB, of which each needs 1 KiB for itself.
  EXPECT_EQ(bytes, 113u << 10);
  const TestStream stream;
  cudaLaunchAttributeValue value{};
  EXPECT_TRUE(ok(cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, &value)));
  EXPECT_EQ(value.priority, 0);
  EXPECT_TRUE(ok(cudaStreamSetAttribute(stream, cudaLaunchAttributeAccessPolicyWindow, &value)));
  unsigned flags = 0;
  EXPECT_TRUE(ok(cudaGetDeviceFlags(&flags)));
}

TEST(EmulatedSurface, PeersCopyInTheirOrder) {
  DeviceArray<int> here(1);
  ASSERT_TRUE(ok(cudaSetDevice(1)));
  {
    DeviceArray<int> there(1);
    const SharedWord gate;
    awaitWord<<<1, 1>>>(gate.get(), 1);
    storeWord<<<1, 1>>>(there.get(), 5);
    ASSERT_TRUE(ok(cudaSetDevice(0)));
    EXPECT_TRUE(ok(cudaMemcpyPeer(here.get(), 0, there.get(), 1, sizeof(int))));  // does not wait
    gate.write(1);
    EXPECT_EQ(here.read(), std::vector<int>{5});
    ASSERT_TRUE(ok(cudaSetDevice(1)));
  }
  ASSERT_TRUE(ok(cudaSetDevice(0)));
}

TEST(EmulatedSurface, TheRestIsRefused) {
  cudaTextureObject_t texture = 0;
  EXPECT_TRUE(returned(cudaCreateTextureObject(&texture, nullptr, nullptr, nullptr), cudaErrorNotSupported));
  cudaExternalMemory_t external = nullptr;
  EXPECT_TRUE(returned(cudaImportExternalMemory(&external, nullptr), cudaErrorNotSupported));
  EXPECT_TRUE(returned(cudaGetLastError(), cudaErrorNotSupported));
}

}  // namespace
}  // namespace tutti::test
