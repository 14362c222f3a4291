// Work on GPUs: results and order.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "tests/cuda/scenarios.h"
#include "tests/harness/oracle.h"

namespace tutti::test {
namespace {

using Pick = PlanOverride::Pick;
using Form = PlanOverride::Form;

constexpr std::uint64_t kSeed = 7;

std::vector<float> input(int rank, std::uint64_t count) {
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = static_cast<float>(inputValue(kSeed, rank, i));
  return values;
}

/// Buffers that serve all checks of a rank: freeing one waits for kernels of other ranks on the same GPU.
struct Buffers {
  explicit Buffers(std::size_t bytes) : send(bytes), recv(bytes) {}
  DeviceBuffer send;
  DeviceBuffer recv;
};

void checkCollective(TestRank& rank, const Buffers& buffers, Collective collective,
                     const PlanOverride& override, std::uint64_t count) {
  const int n = rank.nranks();
  const Descriptor descriptor{.collective = collective, .type = DataType::float32, .count = count};
  const std::uint64_t in_count = inputCount(collective, n, count);
  const std::uint64_t out_count = outputCount(collective, n, count);
  rank.write(buffers.send, input(rank.rank(), in_count).data(), in_count * sizeof(float));
  const GpuTask task = rank.task(descriptor, buffers.send.data(), buffers.recv.data(), override);
  rank.gpu().launchCollective(task, rank.stream());
  rank.synchronize();
  if (onlyRootReceives(collective) && rank.rank() != descriptor.root) return;
  std::vector<float> got(out_count);
  rank.read(got.data(), buffers.recv, out_count * sizeof(float));
  for (std::uint64_t i = 0; i < out_count; ++i) {
    const double expected = expectedValue(kSeed, n, rank.rank(), descriptor, i);
    if (got[i] == static_cast<float>(expected)) continue;
    throw std::runtime_error(fmt::format("{}, {} by {}: element {} is {} instead of {}", describe(descriptor),
                                         name(task.plan.algorithm), name(task.plan.slots), i, got[i],
                                         expected));
  }
}

/// All-reduces one double in place again and again: the sum over the ranks doubles each time, with two ranks.
class Doubling {
 public:
  explicit Doubling(TestRank& rank) : rank_(rank), buffer_(sizeof(double)) {
    require(rank.nranks() == 2, "for two ranks");
    const double first = 1 + rank.rank();
    rank.write(buffer_, &first, sizeof(first));
  }

  void queue(cudaStream_t stream) {
    const Descriptor descriptor{.collective = Collective::all_reduce, .type = DataType::float64, .count = 1};
    rank_.gpu().launchCollective(rank_.task(descriptor, buffer_.data(), buffer_.data()), stream);
  }

  void check(int times) const {
    rank_.synchronize();
    double got = 0;
    rank_.read(&got, buffer_, sizeof(got));
    const double expected = 3 * std::ldexp(1.0, times - 1);
    require(got == expected, fmt::format("{} after {} times instead of {}", got, times, expected));
  }

 private:
  TestRank& rank_;
  DeviceBuffer buffer_;
};

/// A graph of what `queue` puts on a stream.
class Graph {
 public:
  template <class Queue>
  Graph(cudaStream_t stream, const Queue& queue) {
    cudaGraph_t graph = nullptr;
    checkCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    queue();
    checkCuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    checkCuda(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
    checkCuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(executable_); }

  void launch(cudaStream_t stream) { checkCuda(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

void synchronize(const OwnedStream& stream) {
  checkCuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
}

}  // namespace

void collectives(TestRank& rank) {
  constexpr std::uint64_t kMost = 20'000;
  const Buffers buffers(kMost * static_cast<std::size_t>(rank.nranks()) * sizeof(float));
  for (int number = 0; number < kCollectiveCount; ++number) {
    const auto collective = static_cast<Collective>(number);
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{100}, kMost}) {
      checkCollective(rank, buffers, collective, {Pick::ring, Form::automatic}, count);
      checkCollective(rank, buffers, collective, {Pick::direct, Form::plain}, count);
    }
    checkCollective(rank, buffers, collective, {Pick::automatic, Form::packets}, 100);
    checkCollective(rank, buffers, collective, {Pick::automatic, Form::automatic}, 3);
  }
  rank.barrier();
}

void transfers(TestRank& rank) {
  constexpr std::size_t kQueues = 200;
  constexpr std::uint64_t kBytes = 512;
  const int peer = 1 - rank.rank();
  require(rank.nranks() == 2, "for two ranks");
  const DeviceBuffer sent(kQueues * kBytes);
  const DeviceBuffer received(kQueues * kBytes);
  std::vector<std::uint8_t> values(kQueues * kBytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i / kBytes + i + static_cast<std::size_t>(rank.rank()));
  }
  rank.write(sent, values.data(), values.size());
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<GpuTask>> queues(2);
    for (std::size_t i = 0; i < kQueues; ++i) {
      queues[0].push_back(rank.transfer(GpuTask::Kind::send, peer, sent.data() + i * kBytes, kBytes));
      queues[1].push_back(rank.transfer(GpuTask::Kind::receive, peer, received.data() + i * kBytes, kBytes));
    }
    rank.gpu().launchTransfers(queues, rank.stream());
  }
  rank.synchronize();
  std::vector<std::uint8_t> got(values.size());
  rank.read(got.data(), received, got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto expected = static_cast<std::uint8_t>(i / kBytes + i + static_cast<std::size_t>(peer));
    require(got[i] == expected, fmt::format("byte {} is {} instead of {}", i, got[i], expected));
  }
}

void twoStreams(TestRank& rank) {
  const OwnedStream other = makeStream();
  Doubling doubling(rank);
  for (int i = 0; i < 40; ++i) doubling.queue(i % 3 == 0 ? other.get() : rank.stream());
  synchronize(other);
  doubling.check(40);
}

void graphReplays(TestRank& rank) {
  const OwnedStream other = makeStream();
  Doubling doubling(rank);
  doubling.queue(rank.stream());
  Graph graph(rank.stream(), [&] {
    doubling.queue(rank.stream());
    doubling.queue(rank.stream());
  });
  for (int i = 0; i < 100; ++i) {
    graph.launch(rank.stream());
    if (i % 4 == 0) doubling.queue(other.get());
  }
  synchronize(other);
  doubling.check(1 + 200 + 25);
}

void capturedFork(TestRank& rank) {
  const OwnedStream other = makeStream();
  Doubling doubling(rank);
  Graph graph(rank.stream(), [&] {
    rank.gpu().order(rank.stream(), other.get());
    doubling.queue(rank.stream());
    doubling.queue(other.get());
    doubling.queue(rank.stream());
    rank.gpu().order(other.get(), rank.stream());
  });
  Graph second(other.get(), [&] { doubling.queue(other.get()); });
  for (int i = 0; i < 10; ++i) {
    graph.launch(rank.stream());
    second.launch(other.get());
  }
  synchronize(other);
  doubling.check(40);
}

void wokenReplays(TestRank& rank) {
  Doubling doubling(rank);
  Graph graph(rank.stream(), [&] { doubling.queue(rank.stream()); });
  const std::uint64_t before = rank.wakes();
  for (int i = 0; i < 5; ++i) graph.launch(rank.stream());
  doubling.check(5);
  require(rank.wakes() == before + 5, fmt::format("{} wakes for 5 replays", rank.wakes() - before));
}

}  // namespace tutti::test
