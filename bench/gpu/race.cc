#include "bench/gpu/race.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "bench/gpu/cuda_resources.h"
#include "bench/gpu/output.h"

namespace tutti::gpu_bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCallsPerGraph = 8;

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

const char* nameOf(Mode mode) {
  if (mode == Mode::stream) return "stream";
  return mode == Mode::graph ? "graph" : "latency";
}

/// What rank r contributes: whole numbers whose sums are exact in float.
float valueOf(int rank, std::size_t i) {
  return static_cast<float>((rank + 1) * static_cast<int>(i % 1021 + 1));
}

/// What a stream is to carry out again and again, recorded once.
class Recording {
 public:
  template <class Queue>
  Recording(cudaStream_t stream, const Queue& queue) {
    cudaGraph_t graph = nullptr;
    checkCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < kCallsPerGraph; ++i) queue();
    checkCuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    checkCuda(cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
    checkCuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { cudaGraphExecDestroy(executable_); }

  void launch(cudaStream_t stream) const {
    checkCuda(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// What ranks tell each other. The barrier is passed by all of them; between two, what one writes others
/// leave alone.
struct Meeting {
  explicit Meeting(int ranks) : barrier(ranks) {}

  /// The greatest of all ranks' values, to each of them.
  double greatest(double mine) {
    {
      const std::scoped_lock lock(mutex);
      value = std::max(value, mine);
    }
    barrier.arrive_and_wait();
    const double result = value;
    barrier.arrive_and_wait();
    {
      const std::scoped_lock lock(mutex);
      value = 0;
    }
    barrier.arrive_and_wait();
    return result;
  }

  std::barrier<> barrier;
  std::mutex mutex;
  double value = 0;
};

struct Sample {
  double time_us = 0;
  double call_us = 0;  ///< latency: until the call returns
};

/// One rank, in its thread, on its GPU.
class Racer {
 public:
  Racer(const RaceOptions& options, Meeting& meeting, int rank)
      : options_(options),
        meeting_(meeting),
        rank_(rank),
        in_(*std::max_element(options.bytes.begin(), options.bytes.end()) / sizeof(float)),
        out_(in_.bytes() / sizeof(float)) {
    std::vector<float> values(in_.bytes() / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = valueOf(rank, i);
    checkCuda(cudaMemcpy(in_.data(), values.data(), in_.bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  void run(const std::vector<std::unique_ptr<Contender>>& contenders) {
    for (const auto& each : contenders) each->join(rank_);
    for (const std::size_t bytes : options_.bytes) runSize(contenders, bytes);
    meeting_.barrier.arrive_and_wait();
    for (const auto& each : contenders) each->leave(rank_);
    meeting_.barrier.arrive_and_wait();
  }

 private:
  /// A contender at one size.
  struct Lane {
    Contender* contender;
    std::size_t count;
    std::unique_ptr<Recording> recording;
    int iterations = 1;  ///< of what one launch is: a call, or a graph of some
    std::vector<double> times;
    std::vector<double> calls;
  };

  void runSize(const std::vector<std::unique_ptr<Contender>>& contenders, std::size_t bytes) {
    std::vector<Lane> lanes;
    for (const auto& each : contenders) {
      Lane& lane = lanes.emplace_back(Lane{each.get(), bytes / sizeof(float), nullptr, 1, {}, {}});
      if (options_.mode == Mode::graph)
        lane.recording = std::make_unique<Recording>(stream_.get(), [&] { call(lane); });
      verify(lane);
      const double once_us = sample(lane).time_us * (lane.recording ? kCallsPerGraph : 1);
      constexpr double kMost = 2000;
      lane.iterations = static_cast<int>(std::clamp(options_.sample_us / std::max(once_us, 0.1), 1.0, kMost));
      sample(lane);
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        Lane& lane = lanes[(i + static_cast<std::size_t>(round)) % lanes.size()];
        const Sample one = sample(lane);
        lane.times.push_back(one.time_us);
        if (options_.mode == Mode::latency) lane.calls.push_back(one.call_us);
      }
    }
    if (rank_ != 0) return;
    for (const Lane& lane : lanes) print(lane, bytes);
  }

  void call(const Lane& lane) {
    lane.contender->allReduce(rank_, in_.data(), out_.data(), lane.count, stream_.get());
  }

  void launch(const Lane& lane) {
    if (lane.recording) return lane.recording->launch(stream_.get());
    call(lane);
  }

  /// All ranks; the slowest one's.
  Sample sample(const Lane& lane) {
    meeting_.barrier.arrive_and_wait();
    Sample mine = options_.mode == Mode::latency ? waitForEach(lane) : queueAll(lane);
    return {meeting_.greatest(mine.time_us), meeting_.greatest(mine.call_us)};
  }

  Sample queueAll(const Lane& lane) {
    watch_.start(stream_.get());
    for (int i = 0; i < lane.iterations; ++i) launch(lane);
    const double time_us = watch_.stop(stream_.get());
    return {time_us / (lane.iterations * (lane.recording ? kCallsPerGraph : 1)), 0};
  }

  Sample waitForEach(const Lane& lane) {
    const auto begin = Clock::now();
    Clock::duration inside{};
    for (int i = 0; i < lane.iterations; ++i) {
      const auto before = Clock::now();
      launch(lane);
      inside += Clock::now() - before;
      stream_.synchronize();
    }
    return {microseconds(Clock::now() - begin) / lane.iterations, microseconds(inside) / lane.iterations};
  }

  void verify(const Lane& lane) {
    out_.fill(0xff, stream_.get());
    stream_.synchronize();
    meeting_.barrier.arrive_and_wait();
    launch(lane);
    stream_.synchronize();
    std::vector<float> got(lane.count);
    checkCuda(cudaMemcpy(got.data(), out_.data(), lane.count * sizeof(float), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
    for (std::size_t i = 0; i < lane.count; ++i) {
      double expected = 0;
      for (int rank = 0; rank < options_.arrangement.ranks; ++rank)
        expected += static_cast<double>(valueOf(rank, i));
      if (static_cast<double>(got[i]) == expected) continue;
      throw std::runtime_error(lane.contender->name() + ": element " + std::to_string(i) + " of " +
                               std::to_string(lane.count) + " is " + std::to_string(got[i]) + " instead of " +
                               std::to_string(expected));
    }
    meeting_.barrier.arrive_and_wait();
  }

  void print(const Lane& lane, std::size_t bytes) const {
    Json line{{"measure", "all_reduce"},
              {"mode", nameOf(options_.mode)},
              {"ranks", options_.arrangement.ranks},
              {"gpus", options_.arrangement.gpus},
              {"lanes", options_.arrangement.lanes},
              {"bytes", bytes},
              {"contender", lane.contender->name()},
              {"iterations", lane.iterations * (lane.recording ? kCallsPerGraph : 1)},
              {"times_us", lane.times}};
    if (!lane.calls.empty()) line["call_us"] = lane.calls;
    printLine(line);
  }

  const RaceOptions& options_;
  Meeting& meeting_;
  int rank_;
  Stream stream_;
  Stopwatch watch_;
  DeviceArray<float> in_;
  DeviceArray<float> out_;
};

}  // namespace

void race(const RaceOptions& options, const std::vector<std::unique_ptr<Contender>>& contenders) {
  const int ranks = options.arrangement.ranks;
  Meeting meeting(ranks);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        checkCuda(cudaSetDevice(rank % options.arrangement.gpus), "cudaSetDevice");
        Racer(options, meeting, rank).run(contenders);
      } catch (const std::exception& error) {
        // The other ranks wait for this one, some in kernels: there is no orderly way out.
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        std::_Exit(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::gpu_bench
