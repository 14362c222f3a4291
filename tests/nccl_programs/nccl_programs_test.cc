// Programs written for NCCL, unmodified on emulated GPUs: each compares its results with its own on the CPU,
// and frees all that it allocated.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/free_port.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

/// Runs `program` as `ranks` processes on `gpus` GPUs; each of them must say so in the end.
void succeeds(const std::string& program, int gpus, int ranks, const std::string& argument = "") {
  std::vector<std::string> argv{"tutti-run",           "--emulate-gpus",
                                std::to_string(gpus),  "-n",
                                std::to_string(ranks), std::string(TUTTI_NCCL_PROGRAMS "/") + program};
  if (!argument.empty()) argv.push_back(argument);
  const auto result = runCommand(argv, {{"TUTTI_DEVICE", "auto"}, {"TUTTI_EMULATOR_CHECK_LEAKS", "1"}},
                                 std::chrono::seconds(240));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  int said = 0;
  const std::string words = "] " + program + ": ";
  for (auto at = result.out.find(words); at != std::string::npos; at = result.out.find(words, at + 1)) ++said;
  EXPECT_EQ(said, ranks) << result.out << result.err;
}

/// One process per GPU, which find each other by a file.
void succeedsByFile(const std::string& program, int gpus) {
  const ScratchDirectory directory;
  succeeds(program, gpus, gpus, directory.path() + "/id");
}

TEST(NcclPrograms, OneProcessWithEightGpus) {
  succeeds("heat_ring", 8, 1);
  succeeds("power_iteration", 8, 1);
  succeeds("tensor_parallel", 8, 1);
  succeeds("device_query", 8, 1);
}

TEST(NcclPrograms, AThreadPerGpu) {
  succeeds("histogram", 8, 1);
  succeeds("scan_threads", 8, 1);
}

TEST(NcclPrograms, OneGpuIsEnough) {
  succeeds("heat_ring", 1, 1);
  succeedsByFile("kmeans", 1);
}

TEST(NcclPrograms, HalfPrecisionAndLossScaling) { succeedsByFile("half_sgd", 4); }
TEST(NcclPrograms, ProcessesWithSeveralGpusEach) {
  const ScratchDirectory directory;
  succeeds("devices_per_process", 6, 2, directory.path() + "/id");
}
TEST(NcclPrograms, RowsAndColumnsBySplit) { succeedsByFile("split_grid", 6); }
TEST(NcclPrograms, KMeansOnEightGpus) { succeedsByFile("kmeans", 8); }
TEST(NcclPrograms, GraphOfATrainingStep) { succeedsByFile("graph_step", 3); }
TEST(NcclPrograms, BucketsOnSeveralStreams) { succeedsByFile("buckets", 3); }
TEST(NcclPrograms, WeightedAverageInBf16) { succeedsByFile("bf16_average", 4); }
TEST(NcclPrograms, ErrorsAreFoundAndEnded) { succeedsByFile("failing_peer", 3); }
TEST(NcclPrograms, SoftmaxWithTheIdOverTcp) { succeeds("softmax", 4, 4, std::to_string(freePort())); }
TEST(NcclPrograms, ExpertsInForkedRanks) { succeeds("experts_fork", 4, 1); }

}  // namespace
}  // namespace tutti::test
