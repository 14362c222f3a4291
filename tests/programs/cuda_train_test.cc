// tutti-train on GPUs: all that it checks holds, and it learns as it does on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/gpus.h"
#include "tests/harness/scratch_directory.h"
#include "tests/programs/train_command.h"

namespace tutti::test {
namespace {

/// Small enough for emulation.
const std::vector<std::string> kSmall{"--hidden",  "24", "--embedding", "6",
                                      "--context", "4",  "--batch",     "16"};

CommandResult trainOnGpus(int nranks, std::vector<std::string> arguments) {
  auto [all, environment] = launchOnGpus(nranks);
  all.insert(all.end(),
             {"--kill-after", "60", "-n", std::to_string(nranks), "tutti-train", "--device", "cuda"});
  all.insert(all.end(), kSmall.begin(), kSmall.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : kRing) environment[name] = value;
  return runCommand(std::move(all), environment, std::chrono::seconds(240));
}

bool says(const CommandResult& result, const std::string& words) {
  return result.out.find(words) != std::string::npos;
}

TEST(CudaTrain, AllChecksHold) {
  const CommandResult result = trainOnGpus(4, {"--steps", "10", "--verify"});
  EXPECT_EQ(result.exit_code, 0) << both(result);
  EXPECT_TRUE(says(result, "  device     cuda, ")) << both(result);
  EXPECT_TRUE(says(result, "exactly 2(n-1) = 6 times the gradient's")) << both(result);
  EXPECT_TRUE(says(result, "gradients differed between ranks before averaging in 10 of 10 steps"))
      << both(result);
  EXPECT_TRUE(says(result, "distributed run equals one process on the whole batch: yes")) << both(result);
  EXPECT_TRUE(says(result, "loss fell: yes")) << both(result);
  EXPECT_TRUE(says(result, "replicas identical after every step: yes (10/10)")) << both(result);
}

TEST(CudaTrain, UnevenSlicesAdamAndDoubles) {
  const std::vector<std::string> arguments{"--steps",     "6",    "--verify", "--layers", "1",
                                           "--optimizer", "adam", "--dtype",  "fp64"};
  const CommandResult result = trainOnGpus(2, arguments);
  EXPECT_EQ(result.exit_code, 0) << both(result);
  EXPECT_TRUE(says(result, "replicas identical after every step: yes (6/6)")) << both(result);
}

TEST(CudaTrain, AFlippedBitIsFound) {
  const CommandResult result = trainOnGpus(2, {"--steps", "3", "--inject-fault", "1:2"});
  EXPECT_EQ(result.exit_code, 1) << both(result);
  EXPECT_NE(result.err.find("replicas differ after step 2"), std::string::npos) << both(result);
  EXPECT_NE(result.err.find("dense1.weight"), std::string::npos) << both(result);
}

/// Sums are in the same order on both; tanh, exp and log differ in the last bits, which training magnifies a
/// little: over these steps the losses agree to 1e-5 in fp32 and to 1e-12 in fp64, relatively.
TEST(CudaTrain, LearnsAsTheHostDoes) {
  for (const auto& [dtype, limit] : {std::pair{"fp32", 1e-5}, std::pair{"fp64", 1e-12}}) {
    const ScratchDirectory folder;
    const std::string on_host = folder.path() + "/host.json";
    const std::string on_gpu = folder.path() + "/gpu.json";
    std::vector<std::string> arguments = kSmall;
    arguments.insert(arguments.end(),
                     {"--steps", "12", "--dtype", dtype, "--device", "host", "--json", on_host});
    ASSERT_EQ(trainOn(2, arguments).exit_code, 0);
    const CommandResult gpu = trainOnGpus(2, {"--steps", "12", "--dtype", dtype, "--json", on_gpu});
    ASSERT_EQ(gpu.exit_code, 0) << both(gpu);
    const auto host_steps = documentOf(on_host)["steps"];
    const auto gpu_steps = documentOf(on_gpu)["steps"];
    ASSERT_EQ(host_steps.size(), 13U);
    ASSERT_EQ(gpu_steps.size(), 13U);
    // The same weights, before anything was computed.
    EXPECT_EQ(host_steps[0]["hashes"], gpu_steps[0]["hashes"]);
    for (std::size_t step = 1; step < 13; ++step) {
      const double expected = host_steps[step]["loss"];
      EXPECT_NEAR(gpu_steps[step]["loss"], expected, limit * expected) << dtype << " step " << step;
    }
  }
}

TEST(CudaTrain, WithoutGpuTheDriversWordsAndARemedy) {
  auto [all, environment] = launchOnGpus(0);
  all.insert(all.end(), {"-n", "1", "tutti-train", "--device", "cuda"});
  const CommandResult result = runCommand(all, environment);
  EXPECT_EQ(result.exit_code, 1) << both(result);
  EXPECT_NE(result.err.find("--device cuda: no GPU can be used: no CUDA-capable device"), std::string::npos)
      << both(result);
}

}  // namespace
}  // namespace tutti::test
