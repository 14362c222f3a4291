#include "bench/gpu/combine_speed.h"

#include <algorithm>
#include <functional>
#include <string>

#include "bench/gpu/combine_kernels.h"
#include "bench/gpu/cuda_resources.h"
#include "bench/gpu/output.h"

namespace tutti::gpu_bench {
namespace {

/// Sums of two are exact.
float valueOf(int operand, std::size_t i) {
  return static_cast<float>(i % 4093) + 10'000.0F * static_cast<float>(operand);
}

struct Runner {
  std::string name;
  int blocks = 0;
  std::uint32_t sources = 1;
  std::uint32_t destinations = 1;
  std::function<void()> launch;
  int iterations = 1;
  std::vector<double> times;
};

class CombineSpeed {
 public:
  explicit CombineSpeed(const CombineOptions& options)
      : options_(options),
        elements_(*std::max_element(options.bytes.begin(), options.bytes.end()) / sizeof(float)) {
    for (int i = 0; i < 2; ++i) {
      from_.emplace_back(elements_);
      to_.emplace_back(elements_);
      std::vector<float> values(elements_);
      for (std::size_t k = 0; k < elements_; ++k) values[k] = valueOf(i, k);
      checkCuda(cudaMemcpy(from_.back().data(), values.data(), from_.back().bytes(), cudaMemcpyHostToDevice),
                "cudaMemcpy");
    }
  }

  void run(std::size_t bytes) {
    std::vector<Runner> runners = runnersOf(bytes);
    for (Runner& runner : runners) {
      verify(runner, bytes);
      runner.iterations =
          static_cast<int>(std::clamp(options_.sample_us / std::max(sample(runner), 0.1), 1.0, 2000.0));
      sample(runner);
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < runners.size(); ++i) {
        Runner& runner = runners[(i + static_cast<std::size_t>(round)) % runners.size()];
        runner.times.push_back(sample(runner));
      }
    }
    for (const Runner& runner : runners) {
      printLine({{"measure", "combine"},
                 {"case", runner.name},
                 {"blocks", runner.blocks},
                 {"bytes", bytes},
                 {"moved_bytes", (runner.sources + runner.destinations) * bytes},
                 {"iterations", runner.iterations},
                 {"times_us", runner.times}});
    }
  }

 private:
  std::vector<Runner> runnersOf(std::size_t bytes) {
    std::vector<Runner> runners;
    Runner& copy = runners.emplace_back();
    copy.name = "cudaMemcpyAsync";
    copy.launch = [this, bytes] {
      checkCuda(
          cudaMemcpyAsync(to_[0].data(), from_[0].data(), bytes, cudaMemcpyDeviceToDevice, stream_.get()),
          "cudaMemcpyAsync");
    };
    for (const CombineCase& shape : kCombineCases) {
      for (const int blocks : options_.blocks) {
        Runner& runner = runners.emplace_back();
        runner.name = shape.name;
        runner.blocks = blocks;
        runner.sources = shape.sources;
        runner.destinations = shape.destinations;
        runner.launch = [this, &shape, blocks, bytes] {
          const CombineOperands operands{{bytesOf(from_[0]), bytesOf(from_[1])},
                                         {bytesOf(to_[0]), bytesOf(to_[1])}};
          checkCuda(launchCombine(shape, operands, bytes, options_.piece_bytes, blocks, stream_.get()),
                    "launch of combine");
        };
      }
    }
    return runners;
  }

  static std::byte* bytesOf(const DeviceArray<float>& array) {
    return reinterpret_cast<std::byte*>(array.data());
  }

  double sample(const Runner& runner) {
    watch_.start(stream_.get());
    for (int i = 0; i < runner.iterations; ++i) runner.launch();
    return watch_.stop(stream_.get()) / runner.iterations;
  }

  void verify(const Runner& runner, std::size_t bytes) {
    for (const auto& array : to_) array.fill(0xff, stream_.get());
    runner.launch();
    stream_.synchronize();
    for (std::uint32_t d = 0; d < runner.destinations; ++d) {
      std::vector<float> got(bytes / sizeof(float));
      checkCuda(cudaMemcpy(got.data(), to_[d].data(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
      for (std::size_t i = 0; i < got.size(); ++i) {
        const float expected = runner.sources == 1 ? valueOf(0, i) : valueOf(0, i) + valueOf(1, i);
        if (got[i] == expected) continue;
        throw std::runtime_error(runner.name + " of " + std::to_string(bytes) + " bytes: element " +
                                 std::to_string(i) + " is " + std::to_string(got[i]) + " instead of " +
                                 std::to_string(expected));
      }
    }
  }

  const CombineOptions& options_;
  std::size_t elements_;
  Stream stream_;
  Stopwatch watch_;
  std::vector<DeviceArray<float>> from_;
  std::vector<DeviceArray<float>> to_;
};

}  // namespace

void measureCombine(const CombineOptions& options) {
  CombineSpeed speed(options);
  for (const std::size_t bytes : options.bytes) speed.run(bytes);
}

}  // namespace tutti::gpu_bench
