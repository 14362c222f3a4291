// Streams and events: order, waiting, misuse.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

/// A stream that does not go on until the gate opens.
void holdBack(cudaStream_t stream, const SharedWord& gate) {
  awaitWord<<<1, 1, 0, stream>>>(gate.get(), 1);
  EXPECT_TRUE(ok(cudaGetLastError()));
}

void enqueueStore(cudaStream_t stream, const SharedWord& word, int value) {
  storeWord<<<1, 1, 0, stream>>>(word.get(), value);
  EXPECT_TRUE(ok(cudaGetLastError()));
}

TEST(EmulatedStream, WorkIsAsynchronousAndInOrder) {
  const SharedWord gate;
  const SharedWord word;
  const TestStream stream;
  holdBack(stream, gate);
  enqueueStore(stream, word, 1);
  addOne<<<1, 1, 0, stream>>>(word.get());
  EXPECT_TRUE(returned(cudaStreamQuery(stream), cudaErrorNotReady));
  EXPECT_EQ(word.read(), 0);
  gate.write(1);
  EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_TRUE(ok(cudaStreamQuery(stream)));
  EXPECT_EQ(word.read(), 2);
  cudaGetLastError();
}

TEST(EmulatedStream, StreamsRunSideBySide) {
  const SharedWord first;
  const SharedWord second;
  const TestStream one;
  const TestStream other;
  holdBack(one, first);  // each waits for what the other does
  enqueueStore(one, second, 1);
  enqueueStore(other, first, 1);
  holdBack(other, second);
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
}

TEST(EmulatedStream, LegacyStreamWaitsForBlockingOnes) {
  const SharedWord gate;
  const SharedWord word;
  const TestStream blocking(cudaStreamDefault);
  holdBack(blocking, gate);
  enqueueStore(nullptr, word, 1);
  EXPECT_TRUE(returned(cudaStreamQuery(nullptr), cudaErrorNotReady));
  const TestStream free;
  EXPECT_TRUE(ok(cudaStreamSynchronize(free)));
  EXPECT_EQ(word.read(), 0);
  gate.write(1);
  EXPECT_TRUE(ok(cudaStreamSynchronize(nullptr)));
  EXPECT_EQ(word.read(), 1);
  cudaGetLastError();
}

TEST(EmulatedStream, BlockingStreamsWaitForTheLegacyOne) {
  const SharedWord gate;
  const SharedWord blocked;
  const SharedWord passed;
  const TestStream blocking(cudaStreamDefault);
  const TestStream free;
  holdBack(nullptr, gate);
  enqueueStore(blocking, blocked, 1);
  enqueueStore(cudaStreamPerThread, blocked, 2);
  enqueueStore(free, passed, 1);
  EXPECT_TRUE(ok(cudaStreamSynchronize(free)));
  EXPECT_EQ(passed.read(), 1);
  EXPECT_EQ(blocked.read(), 0);
  gate.write(1);
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_NE(blocked.read(), 0);
}

TEST(EmulatedStream, DestroyedStreamsFinish) {
  const SharedWord gate;
  const SharedWord word;
  cudaStream_t stream = nullptr;
  ASSERT_TRUE(ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  holdBack(stream, gate);
  enqueueStore(stream, word, 1);
  EXPECT_TRUE(ok(cudaStreamDestroy(stream)));
  EXPECT_TRUE(returned(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle));
  EXPECT_TRUE(returned(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle));
  gate.write(1);
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_EQ(word.read(), 1);
  cudaGetLastError();
}

TEST(EmulatedStream, TellsWhatItIs) {
  int least = 1;
  int greatest = 1;
  ASSERT_TRUE(ok(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
  EXPECT_LT(greatest, least);
  cudaStream_t stream = nullptr;
  ASSERT_TRUE(ok(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10)));
  unsigned flags = 0;
  int priority = 0;
  int device = -1;
  unsigned long long id = 0;
  unsigned long long legacy_id = 0;
  EXPECT_TRUE(ok(cudaStreamGetFlags(stream, &flags)));
  EXPECT_TRUE(ok(cudaStreamGetPriority(stream, &priority)));
  EXPECT_TRUE(ok(cudaStreamGetDevice(stream, &device)));
  EXPECT_TRUE(ok(cudaStreamGetId(stream, &id)));
  EXPECT_TRUE(ok(cudaStreamGetId(nullptr, &legacy_id)));
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  EXPECT_EQ(priority, greatest);
  EXPECT_EQ(device, 0);
  EXPECT_NE(id, legacy_id);
  EXPECT_TRUE(ok(cudaStreamDestroy(stream)));
}

TEST(EmulatedStream, HostFunctionsMayNotCallCuda) {
  struct Seen {
    cudaError_t code = cudaSuccess;
    int calls = 0;
  } seen;
  const TestStream stream;
  const auto function = [](void* argument) {
    auto& result = *static_cast<Seen*>(argument);
    result.code = cudaStreamSynchronize(nullptr);
    ++result.calls;
  };
  ASSERT_TRUE(ok(cudaLaunchHostFunc(stream, function, &seen)));
  ASSERT_TRUE(ok(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t status, void* argument) {
        static_cast<Seen*>(argument)->calls += status == cudaSuccess ? 10 : 100;
      },
      &seen, 0)));
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_TRUE(returned(seen.code, cudaErrorNotPermitted));
  EXPECT_EQ(seen.calls, 11);
}

TEST(EmulatedEvent, OrdersStreams) {
  const SharedWord gate;
  const SharedWord word;
  const TestStream first;
  const TestStream second;
  const TestEvent event;
  holdBack(first, gate);
  enqueueStore(first, word, 5);
  ASSERT_TRUE(ok(cudaEventRecord(event, first)));
  ASSERT_TRUE(ok(cudaStreamWaitEvent(second, event, 0)));
  addOne<<<1, 1, 0, second>>>(word.get());
  EXPECT_TRUE(returned(cudaEventQuery(event), cudaErrorNotReady));
  gate.write(1);
  EXPECT_TRUE(ok(cudaEventSynchronize(event)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(second)));
  EXPECT_EQ(word.read(), 6);
  cudaGetLastError();
}

TEST(EmulatedEvent, WaitsAreForTheRecordOfTheirTime) {
  const SharedWord gate;
  const TestStream held;
  const TestStream waiting;
  const TestEvent event;
  ASSERT_TRUE(ok(cudaStreamWaitEvent(waiting, event, 0)));  // never recorded: nothing to wait for
  ASSERT_TRUE(ok(cudaEventRecord(event, waiting)));
  ASSERT_TRUE(ok(cudaStreamWaitEvent(waiting, event, 0)));
  holdBack(held, gate);
  ASSERT_TRUE(ok(cudaEventRecord(event, held)));
  EXPECT_TRUE(ok(cudaStreamSynchronize(waiting)));
  gate.write(1);
  EXPECT_TRUE(ok(cudaEventSynchronize(event)));
}

TEST(EmulatedEvent, ElapsedTime) {
  const TestStream stream;
  const TestEvent start;
  const TestEvent end;
  const TestEvent untimed(cudaEventDisableTiming);
  float milliseconds = -1;
  EXPECT_TRUE(returned(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle));
  cudaGetLastError();
  ASSERT_TRUE(ok(cudaEventRecord(start, stream)));
  const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const SharedWord gate;
  ASSERT_TRUE(ok(cudaLaunchHostFunc(stream, sleep, nullptr)));
  holdBack(stream, gate);
  ASSERT_TRUE(ok(cudaEventRecord(end, stream)));
  EXPECT_TRUE(returned(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady));
  gate.write(1);
  ASSERT_TRUE(ok(cudaEventSynchronize(end)));
  ASSERT_TRUE(ok(cudaEventElapsedTime(&milliseconds, start, end)));
  EXPECT_GE(milliseconds, 20);
  ASSERT_TRUE(ok(cudaEventRecord(untimed, stream)));
  EXPECT_TRUE(returned(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle));
  cudaGetLastError();
}

TEST(EmulatedEvent, Misuse) {
  cudaEvent_t event = nullptr;
  EXPECT_TRUE(returned(cudaEventCreateWithFlags(&event, 0x100), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue));
  ASSERT_TRUE(ok(cudaEventCreate(&event)));
  EXPECT_TRUE(
      returned(cudaEventRecordWithFlags(event, nullptr, cudaEventRecordExternal), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaStreamWaitEvent(nullptr, event, cudaEventWaitExternal), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaEventDestroy(event)));
  EXPECT_TRUE(returned(cudaEventDestroy(event), cudaErrorInvalidResourceHandle));
  EXPECT_TRUE(returned(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle));
  EXPECT_TRUE(returned(cudaEventQuery(event), cudaErrorInvalidResourceHandle));
  cudaGetLastError();
}

TEST(EmulatedStream, ManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([] {
      const SharedWord word;
      const TestStream stream;
      const TestEvent event;
      for (int round = 0; round < kRounds; ++round) {
        addOne<<<1, 1, 0, stream>>>(word.get());
        EXPECT_TRUE(ok(cudaEventRecord(event, stream)));
        EXPECT_TRUE(ok(cudaStreamWaitEvent(cudaStreamPerThread, event, 0)));
        addOne<<<1, 1, 0, cudaStreamPerThread>>>(word.get());
        EXPECT_TRUE(ok(cudaEventRecord(event, cudaStreamPerThread)));
        EXPECT_TRUE(ok(cudaStreamWaitEvent(stream, event, 0)));
      }
      EXPECT_TRUE(ok(cudaStreamSynchronize(stream)));
      EXPECT_EQ(word.read(), 2 * kRounds);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tutti::test
