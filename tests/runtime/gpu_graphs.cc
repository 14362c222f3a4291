// Graphs that hold operations of a communicator.
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/transfers.h"
#include "tests/runtime/gpu_device.h"
#include "tests/runtime/gpu_scenarios.h"

namespace tutti::test {

void replay(Comm& comm, int times) {
  const GpuStreamOfTest stream;
  const GpuStreamOfTest eager;
  const std::size_t count = 3000;
  const GpuArray<float> in(filled(count, static_cast<float>(comm.rank() + 1)));
  const GpuArray<float> out(count);
  const GpuArray<float> other(count);
  const GpuArray<float> sums(filled(count, 0.0F));
  const int right = (comm.rank() + 1) % comm.size();
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  checkCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  comm.allReduce(in.data(), out.data(), count, ncclSum, stream);
  tutti::Group group;
  comm.send(in.data(), count, right, stream);
  comm.receive(other.data(), count, left, stream);
  group.end();
  cudaGraph_t graph = nullptr;
  checkCuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t exec = nullptr;
  checkCuda(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < times; ++i) {
    if (i % 10 == 0) {
      // Different data each time, so that a replay that does nothing is seen.
      stream.synchronize();
      in.set(filled(count, static_cast<float>(comm.rank() + 1 + i)));
    }
    checkCuda(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    if (i % 7 == 0) comm.allReduce(in.data(), sums.data(), count, ncclMax, eager);
    if (i % 10 != 9) continue;
    const int set_at = i - 9;
    const auto first = static_cast<float>(set_at);
    requireAll(out, sumOfRanks(comm.size()) + first * static_cast<float>(comm.size()), "replayed all-reduce");
    requireAll(other, static_cast<float>(left + 1) + first, "replayed exchange");
  }
  stream.synchronize();
  eager.synchronize();
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

namespace {

/// What is captured on a stream, ready to be launched.
class CapturedSum {
 public:
  CapturedSum(Comm& comm, const GpuArray<float>& data, cudaStream_t stream) {
    checkCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    comm.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
    checkCuda(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    checkCuda(cudaGraphInstantiate(&exec_, graph_, 0), "cudaGraphInstantiate");
  }
  CapturedSum(const CapturedSum&) = delete;
  CapturedSum& operator=(const CapturedSum&) = delete;
  ~CapturedSum() {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
  }
  void launch(cudaStream_t stream) const { checkCuda(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

void replayAlone(Comm& comm, int times) {
  const GpuStreamOfTest stream;
  const GpuArray<float> data(2000);
  const CapturedSum sum(comm, data, stream);
  for (int i = 0; i < times; ++i) {
    // The proxy sleeps meanwhile.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    data.set(filled(data.size(), static_cast<float>(i + 1)));
    sum.launch(stream);
    stream.synchronize();
    requireAll(data, static_cast<float>((i + 1) * comm.size()), "replayed");
  }
}

void destroyWhileQueued() {
  const ncclUniqueId id = newId();
  std::latch launched(2);
  std::latch ended(1);
  for (const std::string& error : runThreads(2, [&](int rank) {
         checkCuda(cudaSetDevice(rank), "cudaSetDevice");
         Comm comm(2, id, rank);
         const GpuStreamOfTest stream;
         const GpuArray<float> data(filled(2000, 1.0F));
         const CapturedSum sum(comm, data, stream);
         const auto hold = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
         checkCuda(cudaLaunchHostFunc(stream, hold, nullptr), "cudaLaunchHostFunc");
         for (int i = 0; i < 5; ++i) sum.launch(stream);
         launched.arrive_and_wait();
         // Nothing of the first one is freed while the second one may use it: so nothing else waits.
         if (rank == 1) ended.wait();
         const ncclResult_t result = ncclCommDestroy(comm.take());
         const cudaError_t state = cudaStreamQuery(stream);
         if (rank == 0) ended.count_down();
         check(result);
         checkCuda(state, "replays, after ncclCommDestroy");
         requireAll(data, 32, "five sums of two ranks");
       })) {
    require(error.empty(), error);
  }
}

}  // namespace tutti::test
