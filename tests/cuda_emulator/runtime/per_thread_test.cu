// Built with --default-stream per-thread: stream 0 is the thread's own, and waits for no other. What checks.h
// has of calls with streams is compiled without that option elsewhere, and not used here.
#include <thread>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

TEST(EmulatedPerThread, DefaultStreamsOfThreadsAreApart) {
  const SharedWord gate;
  int* words = nullptr;
  ASSERT_TRUE(ok(cudaMallocHost(&words, 2 * sizeof(int))));
  awaitWord<<<1, 1>>>(gate.get(), 1);  // in this thread's stream
  storeWord<<<1, 1>>>(words, 1);
  std::thread([&] {
    storeWord<<<1, 1>>>(words + 1, 2);
    int copied = 0;
    EXPECT_TRUE(ok(cudaMemcpy(&copied, words + 1, sizeof copied, cudaMemcpyDefault)));
    EXPECT_EQ(copied, 2) << "the copy follows the kernel of its thread, and does not wait for the other's";
    EXPECT_TRUE(ok(cudaStreamSynchronize(nullptr)));
    gate.write(1);
  }).join();
  EXPECT_TRUE(ok(cudaStreamSynchronize(nullptr)));
  EXPECT_EQ(words[0], 1);
  EXPECT_TRUE(ok(cudaFreeHost(words)));
}

TEST(EmulatedPerThread, EventsGraphsAndPoolsInStreamZero) {
  const TestEvent event;
  int* words = nullptr;
  ASSERT_TRUE(ok(cudaMallocAsync(&words, 4 * sizeof(int), nullptr)));
  EXPECT_TRUE(ok(cudaMemsetAsync(words, 0, 4 * sizeof(int))));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_TRUE(ok(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal)))
      << "the legacy stream cannot";
  storeWord<<<1, 1>>>(words + 1, 9);
  ASSERT_TRUE(ok(cudaStreamEndCapture(nullptr, &graph)));
  ASSERT_TRUE(ok(cudaGraphInstantiate(&executable, graph, 0)));
  EXPECT_TRUE(ok(cudaGraphLaunch(executable, nullptr)));
  EXPECT_TRUE(ok(cudaEventRecord(event)));
  EXPECT_TRUE(ok(cudaEventSynchronize(event)));
  int got[4];
  EXPECT_TRUE(ok(cudaMemcpy(got, words, sizeof got, cudaMemcpyDeviceToHost)));
  EXPECT_EQ(got[1], 9);
  EXPECT_EQ(got[0] + got[2] + got[3], 0);
  EXPECT_TRUE(ok(cudaFreeAsync(words, nullptr)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(nullptr)));
  EXPECT_TRUE(ok(cudaGraphExecDestroy(executable)));
  EXPECT_TRUE(ok(cudaGraphDestroy(graph)));
}

}  // namespace
}  // namespace tutti::test
