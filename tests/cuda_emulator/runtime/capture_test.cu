// Stream capture: what becomes part of a graph, what is forbidden meanwhile, and what that does to the
// capture.
#include <functional>
#include <thread>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

cudaStreamCaptureStatus statusOf(cudaStream_t stream) {
  auto status = cudaStreamCaptureStatusNone;
  EXPECT_TRUE(ok(cudaStreamIsCapturing(stream, &status)));
  return status;
}

/// Begins a capture, does `forbidden`, which must return `expected`, and ends the capture, which is invalid
/// now.
void expectForbidden(cudaStream_t stream, cudaError_t expected, const std::function<cudaError_t()>& forbidden,
                     cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, mode)));
  EXPECT_TRUE(returned(forbidden(), expected));
  EXPECT_EQ(statusOf(stream), cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(&graph);
  EXPECT_TRUE(returned(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated));
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(statusOf(stream), cudaStreamCaptureStatusNone);
  cudaGetLastError();
}

/// Ends a capture that is still valid and destroys what it gave.
void expectValid(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  ASSERT_TRUE(ok(cudaStreamEndCapture(stream, &graph)));
  EXPECT_TRUE(ok(cudaGraphDestroy(graph)));
}

cudaError_t allocate() {
  void* memory = nullptr;
  const auto code = cudaMalloc(&memory, 4);
  if (code == cudaSuccess) cudaFree(memory);
  return code;
}

TEST(EmulatedCapture, NothingIsDoneMeanwhile) {
  const SharedWord word;
  const TestStream stream;
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  storeWord<<<1, 1, 0, stream>>>(word.get(), 1);
  EXPECT_EQ(statusOf(stream), cudaStreamCaptureStatusActive);
  expectValid(stream);
  ASSERT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_EQ(word.read(), 0);
}

TEST(EmulatedCapture, CallsThatWaitAreForbidden) {
  const TestStream stream;
  const TestStream other;
  const TestEvent event;
  int host = 0;
  const DeviceArray<int> memory(1);
  const auto unsupported = cudaErrorStreamCaptureUnsupported;
  expectForbidden(stream, unsupported, [&] { return cudaStreamSynchronize(stream); });
  expectForbidden(stream, unsupported, [&] { return cudaStreamQuery(stream); });
  expectForbidden(stream, unsupported, [&] { return cudaDeviceSynchronize(); });
  expectForbidden(stream, unsupported, [&] { return cudaStreamSynchronize(other); });
  expectForbidden(stream, unsupported,
                  [&] { return cudaMemcpy(&host, memory.get(), 4, cudaMemcpyDeviceToHost); });
  expectForbidden(stream, unsupported, [&] { return cudaEventQuery(event); });
  expectForbidden(stream, unsupported, allocate);
}

TEST(EmulatedCapture, ModesSayWhatOtherThreadsMayDo) {
  const TestStream stream;
  const auto elsewhere = [](const std::function<cudaError_t()>& body) {
    auto result = cudaSuccess;
    std::thread([&] { result = body(); }).join();
    return result;
  };
  expectForbidden(stream, cudaErrorStreamCaptureUnsupported, [&] { return elsewhere(allocate); });
  expectForbidden(stream, cudaErrorStreamCaptureUnsupported, allocate, cudaStreamCaptureModeThreadLocal);
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)));
  EXPECT_TRUE(ok(elsewhere(allocate)));
  expectValid(stream);
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed)));
  EXPECT_TRUE(ok(allocate()));
  EXPECT_TRUE(ok(elsewhere(allocate)));
  expectValid(stream);
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  auto mode = cudaStreamCaptureModeRelaxed;
  ASSERT_TRUE(ok(cudaThreadExchangeStreamCaptureMode(&mode)));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_TRUE(ok(allocate()));
  ASSERT_TRUE(ok(cudaThreadExchangeStreamCaptureMode(&mode)));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  expectValid(stream);
}

TEST(EmulatedCapture, TheLegacyStreamIsForbidden) {
  const DeviceArray<int> word(1);
  EXPECT_TRUE(returned(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
                       cudaErrorStreamCaptureUnsupported));
  const auto launch = [&] {
    storeWord<<<1, 1>>>(word.get(), 1);
    return cudaGetLastError();
  };
  const TestStream blocking(cudaStreamDefault);
  expectForbidden(blocking, cudaErrorStreamCaptureImplicit, launch);
  expectForbidden(blocking, cudaErrorStreamCaptureImplicit, [&] { return cudaMemset(word.get(), 0, 4); });
  const TestStream free;
  ASSERT_TRUE(ok(cudaStreamBeginCapture(free, cudaStreamCaptureModeGlobal)));
  EXPECT_TRUE(ok(launch()));
  expectValid(free);
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
}

TEST(EmulatedCapture, BeginAndEndMustMatch) {
  const TestStream stream;
  const TestStream other;
  cudaGraph_t graph = nullptr;
  EXPECT_TRUE(returned(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState));
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  EXPECT_TRUE(returned(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState));
  auto code = cudaSuccess;
  std::thread([&] { code = cudaStreamEndCapture(stream, &graph); }).join();
  EXPECT_TRUE(returned(code, cudaErrorStreamCaptureWrongThread));
  expectValid(stream);

  const TestEvent event;
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  ASSERT_TRUE(ok(cudaEventRecord(event, stream)));
  ASSERT_TRUE(ok(cudaStreamWaitEvent(other, event, 0)));
  EXPECT_TRUE(returned(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched));
  EXPECT_TRUE(returned(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated));
  cudaGetLastError();
}

TEST(EmulatedCapture, ForksMustBeJoined) {
  const SharedWord word;
  const TestStream stream;
  const TestStream other;
  const TestEvent fork;
  const TestEvent join;
  for (const bool joined : {false, true}) {
    ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
    ASSERT_TRUE(ok(cudaEventRecord(fork, stream)));
    ASSERT_TRUE(ok(cudaStreamWaitEvent(other, fork, 0)));
    addOne<<<1, 1, 0, other>>>(word.get());
    EXPECT_EQ(statusOf(other), cudaStreamCaptureStatusActive);
    ASSERT_TRUE(ok(cudaEventRecord(join, other)));
    if (joined) ASSERT_TRUE(ok(cudaStreamWaitEvent(stream, join, 0)));
    cudaGraph_t graph = nullptr;
    EXPECT_TRUE(returned(cudaStreamEndCapture(stream, &graph),
                         joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
    EXPECT_EQ(statusOf(other), cudaStreamCaptureStatusNone);
    if (joined) EXPECT_TRUE(ok(cudaGraphDestroy(graph)));
  }
  cudaGetLastError();
}

TEST(EmulatedCapture, EventsDoNotCrossItsBorder) {
  const TestStream stream;
  const TestStream outside;
  const TestEvent before;
  const TestEvent inside;
  ASSERT_TRUE(ok(cudaEventRecord(before, outside)));
  expectForbidden(stream, cudaErrorStreamCaptureIsolation,
                  [&] { return cudaStreamWaitEvent(stream, before, 0); });
  const auto record = [&] { EXPECT_TRUE(ok(cudaEventRecord(inside, stream))); };
  auto relaxed = cudaStreamCaptureModeRelaxed;
  ASSERT_TRUE(ok(cudaThreadExchangeStreamCaptureMode(&relaxed)));
  expectForbidden(stream, cudaErrorCapturedEvent, [&] { return record(), cudaEventQuery(inside); });
  expectForbidden(stream, cudaErrorCapturedEvent, [&] { return record(), cudaEventSynchronize(inside); });
  expectForbidden(stream, cudaErrorStreamCaptureImplicit,
                  [&] { return record(), cudaStreamWaitEvent(nullptr, inside, 0); });
  ASSERT_TRUE(ok(cudaThreadExchangeStreamCaptureMode(&relaxed)));
  const TestStream second;
  ASSERT_TRUE(ok(cudaStreamBeginCapture(second, cudaStreamCaptureModeGlobal)));
  expectForbidden(stream, cudaErrorStreamCaptureMerge,
                  [&] { return record(), cudaStreamWaitEvent(second, inside, 0); });
  cudaGraph_t graph = nullptr;
  EXPECT_TRUE(returned(cudaStreamEndCapture(second, &graph), cudaErrorStreamCaptureInvalidated));
  cudaGetLastError();
}

TEST(EmulatedCapture, Info) {
  const SharedWord word;
  const TestStream stream;
  ASSERT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  addOne<<<1, 1, 0, stream>>>(word.get());
  auto status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  std::size_t count = 0;
  ASSERT_TRUE(ok(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &last, nullptr, &count)));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  cudaGraphNode_t mine = nullptr;
  cudaHostNodeParams params{[](void*) {}, nullptr};
  ASSERT_TRUE(ok(cudaGraphAddHostNode(&mine, graph, last, 1, &params)));
  ASSERT_TRUE(
      ok(cudaStreamUpdateCaptureDependencies(stream, &mine, nullptr, 1, cudaStreamSetCaptureDependencies)));
  ASSERT_TRUE(ok(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &count)));
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(last[0], mine);
  cudaGraph_t ended = nullptr;
  ASSERT_TRUE(ok(cudaStreamEndCapture(stream, &ended)));
  EXPECT_EQ(ended, graph);
  EXPECT_TRUE(ok(cudaGraphDestroy(ended)));
}

}  // namespace
}  // namespace tutti::test
