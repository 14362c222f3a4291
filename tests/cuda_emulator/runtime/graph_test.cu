// Graphs: launched again and again.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/runtime/checks.h"
#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

constexpr int kReplays = 100;

/// What a body captured into a stream becomes.
class CapturedGraph {
 public:
  template <class Body>
  CapturedGraph(cudaStream_t stream, Body&& body) {
    EXPECT_TRUE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
    body();
    EXPECT_TRUE(ok(cudaStreamEndCapture(stream, &graph_)));
    EXPECT_TRUE(ok(cudaGraphInstantiate(&executable_, graph_, 0)));
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() {
    EXPECT_TRUE(ok(cudaGraphExecDestroy(executable_)));
    EXPECT_TRUE(ok(cudaGraphDestroy(graph_)));
  }

  cudaGraph_t graph() const { return graph_; }
  cudaGraphExec_t executable() const { return executable_; }
  void launch(cudaStream_t stream) const { EXPECT_TRUE(ok(cudaGraphLaunch(executable_, stream))); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

std::vector<cudaGraphNodeType> typesOf(cudaGraph_t graph) {
  std::size_t count = 0;
  EXPECT_TRUE(ok(cudaGraphGetNodes(graph, nullptr, &count)));
  std::vector<cudaGraphNode_t> nodes(count);
  EXPECT_TRUE(ok(cudaGraphGetNodes(graph, nodes.data(), &count)));
  std::vector<cudaGraphNodeType> types(count);
  for (std::size_t node = 0; node < count; ++node)
    EXPECT_TRUE(ok(cudaGraphNodeGetType(nodes[node], &types[node])));
  return types;
}

TEST(EmulatedGraph, EveryKindOfNode) {
  const SharedWord word;
  const SharedWord copy;
  const TestStream stream;
  int calls = 0;
  const CapturedGraph graph(stream, [&] {
    cudaMemsetAsync(word.get(), 0, 4, stream);
    addOne<<<1, 1, 0, stream>>>(word.get());
    cudaMemcpyAsync(copy.get(), word.get(), 4, cudaMemcpyDefault, stream);
    cudaLaunchHostFunc(
        stream, [](void* argument) { ++*static_cast<int*>(argument); }, &calls);
  });
  EXPECT_EQ(typesOf(graph.graph()),
            (std::vector<cudaGraphNodeType>{cudaGraphNodeTypeMemset, cudaGraphNodeTypeKernel,
                                            cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeHost}));
  word.write(50);
  for (int replay = 0; replay < kReplays; ++replay) graph.launch(stream);
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(copy.read(), 1);
  EXPECT_EQ(calls, kReplays);
}

TEST(EmulatedGraph, ArgumentsAreThoseOfTheCapture) {
  const SharedWord word;
  const TestStream stream;
  int value = 7;
  const CapturedGraph graph(stream, [&] { storeWord<<<1, 1, 0, stream>>>(word.get(), value); });
  value = 8;
  graph.launch(stream);
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(word.read(), 7);
}

TEST(EmulatedGraph, BranchesRunSideBySideAndJoin) {
  const SharedWord ping;
  const SharedWord pong;
  const SharedWord sum;
  const TestStream stream;
  const TestStream other;
  const TestEvent fork;
  const TestEvent join;
  const CapturedGraph graph(stream, [&] {
    storeWord<<<1, 1, 0, stream>>>(ping.get(), 0);
    storeWord<<<1, 1, 0, stream>>>(pong.get(), 0);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(other, fork, 0);
    awaitWord<<<1, 1, 0, stream>>>(ping.get(), 1);  // each branch waits for what the other does
    storeWord<<<1, 1, 0, stream>>>(pong.get(), 1);
    storeWord<<<1, 1, 0, other>>>(ping.get(), 1);
    awaitWord<<<1, 1, 0, other>>>(pong.get(), 1);
    cudaEventRecord(join, other);
    cudaStreamWaitEvent(stream, join, 0);
    addOne<<<1, 1, 0, stream>>>(sum.get());
  });
  for (int replay = 0; replay < kReplays; ++replay) graph.launch(stream);
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(sum.read(), kReplays);
}

TEST(EmulatedGraph, LaunchesFollowOneAnother) {
  const SharedWord word;
  const SharedWord first_done;
  const TestStream first;
  const TestStream second;
  // Two launches at once would both read the same word.
  const CapturedGraph graph(first, [&] {
    addOne<<<1, 1, 0, first>>>(word.get());
    addOne<<<1, 1, 0, first>>>(word.get());
  });
  for (int replay = 0; replay < kReplays; ++replay) {
    graph.launch(first);
    graph.launch(second);
  }
  ASSERT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_EQ(word.read(), 4 * kReplays);
}

TEST(EmulatedGraph, ExternalEvents) {
  const SharedWord word;
  const SharedWord order;
  const TestStream stream;
  const TestStream other;
  const TestEvent input_ready;
  const TestEvent output_ready;
  const CapturedGraph graph(stream, [&] {
    EXPECT_TRUE(ok(cudaStreamWaitEvent(stream, input_ready, cudaEventWaitExternal)));
    addOne<<<1, 1, 0, stream>>>(word.get());
    EXPECT_TRUE(ok(cudaEventRecordWithFlags(output_ready, stream, cudaEventRecordExternal)));
  });
  EXPECT_EQ(typesOf(graph.graph()),
            (std::vector<cudaGraphNodeType>{cudaGraphNodeTypeWaitEvent, cudaGraphNodeTypeKernel,
                                            cudaGraphNodeTypeEventRecord}));
  for (int replay = 1; replay <= kReplays; ++replay) {
    const SharedWord gate;
    awaitWord<<<1, 1, 0, other>>>(gate.get(), 1);
    ASSERT_TRUE(ok(cudaEventRecord(input_ready, other)));
    graph.launch(stream);
    EXPECT_TRUE(
        returned(cudaEventQuery(output_ready), cudaErrorNotReady));  // of this launch, not of the last
    EXPECT_EQ(word.read(), replay - 1);
    gate.write(1);
    ASSERT_TRUE(ok(cudaEventSynchronize(output_ready)));
    EXPECT_EQ(word.read(), replay);
  }
  ASSERT_TRUE(ok(cudaDeviceSynchronize()));
  cudaGetLastError();
}

TEST(EmulatedGraph, LaunchedInACapture) {
  const SharedWord word;
  const TestStream stream;
  const CapturedGraph inner(stream, [&] { addOne<<<1, 1, 0, stream>>>(word.get()); });
  const CapturedGraph outer(stream, [&] {
    inner.launch(stream);
    inner.launch(stream);
  });
  EXPECT_EQ(word.read(), 0);
  outer.launch(stream);
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(word.read(), 2);
}

TEST(EmulatedGraph, BuiltByHand) {
  const SharedWord word;
  cudaGraph_t graph = nullptr;
  ASSERT_TRUE(ok(cudaGraphCreate(&graph, 0)));
  int* address = word.get();
  int value = 20;
  void* arguments[] = {&address, &value};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(storeWord);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  cudaGraphNode_t store = nullptr;
  ASSERT_TRUE(ok(cudaGraphAddKernelNode(&store, graph, nullptr, 0, &params)));
  cudaHostNodeParams host{[](void* argument) { *static_cast<int*>(argument) *= 2; }, address};
  cudaGraphNode_t doubled = nullptr;
  ASSERT_TRUE(ok(cudaGraphAddHostNode(&doubled, graph, &store, 1, &host)));
  std::size_t roots = 0;
  EXPECT_TRUE(ok(cudaGraphGetRootNodes(graph, nullptr, &roots)));
  EXPECT_EQ(roots, 1u);
  cudaGraphExec_t executable = nullptr;
  ASSERT_TRUE(ok(cudaGraphInstantiateWithFlags(&executable, graph, 0)));
  EXPECT_TRUE(ok(cudaGraphDestroy(graph)));  // the executable graph is a copy
  ASSERT_TRUE(ok(cudaGraphLaunch(executable, nullptr)));
  ASSERT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_EQ(word.read(), 40);
  EXPECT_TRUE(ok(cudaGraphExecDestroy(executable)));
}

TEST(EmulatedGraph, Update) {
  const SharedWord word;
  const TestStream stream;
  const CapturedGraph five(stream, [&] { storeWord<<<1, 1, 0, stream>>>(word.get(), 5); });
  const CapturedGraph six(stream, [&] { storeWord<<<1, 1, 0, stream>>>(word.get(), 6); });
  const CapturedGraph longer(stream, [&] {
    storeWord<<<1, 1, 0, stream>>>(word.get(), 5);
    storeWord<<<1, 1, 0, stream>>>(word.get(), 5);
  });
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_TRUE(ok(cudaGraphExecUpdate(five.executable(), six.graph(), &info)));
  five.launch(stream);
  ASSERT_TRUE(ok(cudaStreamSynchronize(stream)));
  EXPECT_EQ(word.read(), 6);
  EXPECT_TRUE(returned(cudaGraphExecUpdate(five.executable(), longer.graph(), &info),
                       cudaErrorGraphExecUpdateFailure));
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
}

TEST(EmulatedGraph, KeepsObjectsUntilItsLastLaunchHasEnded) {
  std::atomic<int> ended = 0;
  std::atomic<bool> may_end = false;
  const TestStream stream;
  const auto end = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
  const auto wait = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  cudaUserObject_t object = nullptr;
  ASSERT_TRUE(ok(cudaUserObjectCreate(&object, &ended, end, 2, cudaUserObjectNoDestructorSync)));
  {
    const CapturedGraph graph(stream, [&] {
      cudaStreamCaptureStatus status{};
      cudaGraph_t captured = nullptr;
      EXPECT_TRUE(
          ok(cudaStreamGetCaptureInfo(stream, &status, nullptr, &captured, nullptr, nullptr, nullptr)));
      EXPECT_TRUE(ok(cudaGraphRetainUserObject(captured, object, 1, cudaGraphUserObjectMove)));
      cudaLaunchHostFunc(stream, wait, &may_end);
    });
    EXPECT_TRUE(ok(cudaUserObjectRelease(object, 1)));
    EXPECT_TRUE(returned(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue));
    cudaGetLastError();
    graph.launch(stream);
  }
  EXPECT_EQ(ended, 0);  // the launch is under way
  may_end = true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (ended == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(ended, 1);
}

TEST(EmulatedGraph, Misuse) {
  cudaGraph_t graph = nullptr;
  ASSERT_TRUE(ok(cudaGraphCreate(&graph, 0)));
  cudaGraphExec_t executable = nullptr;
  ASSERT_TRUE(ok(cudaGraphInstantiate(&executable, graph, 0)));
  EXPECT_TRUE(ok(cudaGraphLaunch(executable, nullptr)));  // of nothing
  EXPECT_TRUE(ok(cudaDeviceSynchronize()));
  EXPECT_TRUE(ok(cudaGraphDestroy(graph)));
  EXPECT_TRUE(returned(cudaGraphDestroy(graph), cudaErrorInvalidValue));
  EXPECT_TRUE(returned(cudaGraphInstantiate(&executable, graph, 0), cudaErrorInvalidValue));
  EXPECT_TRUE(ok(cudaGraphExecDestroy(executable)));
  EXPECT_TRUE(returned(cudaGraphLaunch(executable, nullptr), cudaErrorInvalidValue));
  cudaGetLastError();
}

}  // namespace
}  // namespace tutti::test
