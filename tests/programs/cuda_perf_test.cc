// The *_perf programs on GPUs: every value is compared with the oracle of the host. Emulation is
// slow: sizes are small, and what every type and operation does is in Full.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/programs/cuda_command.h"

namespace tutti::perf {
namespace {

const Arguments kTwoSizes{"-b", "1K", "-e", "64K", "-f", "64", "-n", "2"};
const Arguments kOneSize{"-b", "4K", "-e", "4K", "-n", "2"};

TEST(CudaPerf, EveryCollective) {
  for (const char* program : {"all_reduce_perf", "reduce_scatter_perf", "all_gather_perf", "broadcast_perf",
                              "reduce_perf", "alltoall_perf", "gather_perf", "scatter_perf"}) {
    SCOPED_TRACE(program);
    expectGood(onGpus(3, 3, program, kTwoSizes), 2);
  }
  for (const char* program : {"sendrecv_perf", "alltoallv_perf"}) {
    SCOPED_TRACE(program);
    expectGoodOutOfPlace(onGpus(3, 3, program, kTwoSizes), 2);
  }
  expectGood(onGpus(2, 2, "hypercube_perf", kTwoSizes), 2);
}

TEST(CudaPerf, RanksAreProcessesThreadsAndGpus) {
  if (!test::hasGpus(4)) GTEST_SKIP() << test::kTooFew;
  expectGood(onGpus(2, 1, "all_reduce_perf", kOneSize + Arguments{"-t", "2"}), 1);
  expectGood(onGpus(2, 1, "all_reduce_perf", kOneSize + Arguments{"-g", "2"}), 1);
  const CommandResult result = onGpus(4, 1, "all_gather_perf", kOneSize + Arguments{"-t", "2", "-g", "2"});
  expectGood(result, 1);
  for (const char* gpu : {"0", "1", "2", "3"}) {
    std::string line("#  Rank  ");
    line.append(gpu).append(" Group  0 Pid +[0-9]+ on +[^ ]+ device  ");
    line.append(gpu).append(" \\[[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\] .+");
    EXPECT_TRUE(matches(result.out, line));
  }
  expectGood(onGpus(2, 1, "alltoall_perf", kOneSize + Arguments{"-g", "2", "-m", "2"}), 1);
  expectGood(
      onGpus(4, 2, "all_reduce_perf", kOneSize + Arguments{"-g", "2"}, {{"NCCL_TESTS_SPLIT", "MOD 2"}}), 1);
  // The processes before this one on the host take the first GPUs.
  const CommandResult processes = onGpus(4, 2, "all_reduce_perf", kOneSize + Arguments{"-g", "2"});
  expectGood(processes, 1);
  EXPECT_TRUE(matches(processes.out, "#  Rank  2 Group  0 Pid +[0-9]+ on +[^ ]+ device  2 "));
  const CommandResult chosen =
      onGpus(4, 1, "all_reduce_perf", kOneSize + Arguments{"-t", "2"}, {{"NCCL_TESTS_DEVICE", "2"}});
  expectGood(chosen, 1);
  EXPECT_TRUE(matches(chosen.out, "#  Rank  0 Group  0 Pid +[0-9]+ on +[^ ]+ device  2 "));
}

TEST(CudaPerf, GraphsStreamsAndRegistration) {
  const CommandResult graph = onGpus(2, 2, "all_reduce_perf", kOneSize + Arguments{"-G", "3", "-c", "2"});
  expectGood(graph, 1);
  EXPECT_TRUE(contains(graph.out, " validation: 2 graph: 3 "));
  expectGood(onGpus(2, 1, "all_reduce_perf", kOneSize + Arguments{"-G", "2", "-g", "2", "-m", "2"}), 1);
  expectGood(onGpus(2, 2, "all_reduce_perf", kTwoSizes + Arguments{"-R", "1"}), 2);
  expectGood(onGpus(2, 2, "all_gather_perf", kOneSize + Arguments{"-y", "1"}), 1);
  for (const char* blocking : {"1", "2", "3"}) {
    expectGood(onGpus(2, 2, "all_reduce_perf", kOneSize + Arguments{"-z", blocking, "-m", "2"}), 1);
  }
}

TEST(CudaPerf, RanksOfAProcessDoNotShareANullStream) {
  const CommandResult result = onGpus(1, 1, "all_gather_perf", kOneSize + Arguments{"-y", "1", "-t", "2"});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_TRUE(contains(result.err, "-y 1: the 2 ranks of a process share 1 GPU(s)"));
  expectGood(onGpus(1, 2, "all_gather_perf", kOneSize + Arguments{"-y", "1"}), 1);
}

/// Rank 1 goes on after one replay: another operation, which is a fault. Rank 0 would replay for an hour.
TEST(CudaPerf, ReplaysEndWithTheFirstFault) {
  const std::string command = binary("all_reduce_perf") +
                              " --device cuda -b 4K -e 4K -n 1 -G $((TUTTI_RANK == 0 ? 100000000 : 1)) || "
                              "test $TUTTI_RANK = 1";
  const auto [launcher, environment] = test::launchOnGpus(2);
  const CommandResult result =
      runCommand(launcher + Arguments{"--kill-after", "60", "--no-prefix", "-n", "2", "sh", "-c", command},
                 environment, kPatience);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(contains(result.err, "AllGather #")) << result.err;
}

TEST(CudaPerf, TypesAndOperationsSampled) {
  expectGood(onGpus(2, 2, "all_reduce_perf", kOneSize + Arguments{"-d", "bfloat16", "-o", "all"}), 6);
  expectGood(onGpus(2, 2, "reduce_scatter_perf", kOneSize + Arguments{"-d", "all", "-u", "1"}), 12);
}

TEST(CudaPerf, CorruptionIsFound) {
  const CommandResult result = onGpus(2, 2, "all_reduce_perf", kOneSize + Arguments{"--corrupt", "1:17"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_TRUE(matches(result.err, "rank 1: size 4096 float .*out-of-place: first wrong element: index 17, "));
}

TEST(CudaPerf, JsonNamesTheDevices) {
  if (!test::hasGpus(2)) GTEST_SKIP() << test::kTooFew;
  const auto folder = std::filesystem::path(testing::TempDir()) / ("cuda_perf." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "results.json";
  expectGood(onGpus(2, 1, "all_reduce_perf", kOneSize + Arguments{"-g", "2", "-G", "2", "-J", path}), 1);
  const auto document = nlohmann::json::parse(std::ifstream(path));
  const auto& config = document["config"];
  EXPECT_EQ(config["device"], "cuda");
  EXPECT_EQ(config["ngpus"], 2);
  EXPECT_EQ(config["graph"], 2);
  ASSERT_EQ(config["devices"].size(), 2U);
  EXPECT_EQ(config["devices"][1]["device"], 1);
  EXPECT_NE(config["devices"][0]["device_hex"], config["devices"][1]["device_hex"]);
  EXPECT_NE(config["devices"][0]["device_info"], "");
  std::filesystem::remove_all(folder);
}

TEST(CudaPerf, AutoTakesTheGpusThatThereAre) {
  ::unsetenv("TUTTI_DEVICE");
  const auto run = [](int gpus, const Arguments& arguments) {
    const auto [launcher, environment] = test::launchOnGpus(gpus);
    return runCommand(
        launcher + Arguments{"--no-prefix", "-n", "2", binary("all_reduce_perf")} + kOneSize + arguments,
        environment, kPatience);
  };
  const CommandResult with = run(2, {});
  expectGood(with, 1);
  EXPECT_FALSE(contains(with.out, "[host memory]"));
  const CommandResult without = run(0, {});
  expectGood(without, 1);
  EXPECT_TRUE(contains(without.out, "[host memory]"));
  const CommandResult host = run(2, {"--device", "host"});
  expectGood(host, 1);
  EXPECT_TRUE(contains(host.out, "[host memory]"));
}

TEST(CudaPerf, WithoutGpuTheDriversWordsAndARemedy) {
  const CommandResult result = onGpus(0, 1, "all_reduce_perf", kOneSize);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_TRUE(
      contains(result.err, "all_reduce_perf: --device cuda: no GPU can be used: no CUDA-capable device"));
  EXPECT_TRUE(contains(result.err, "--device host works on host memory"));
}

// Every type with every operation, and every way to have ranks.
TEST(CudaPerfFull, EveryTypeAndOperation) {
  const Arguments everything{"-b", "16", "-e", "1M", "-f",  "16", "-n",
                             "1",  "-w", "0",  "-d", "all", "-o", "all"};
  expectGood(onGpus(2, 2, "all_reduce_perf", everything), 12 * 6 * 5);
  expectGood(onGpus(3, 3, "reduce_scatter_perf", everything), 12 * 6 * 5);
  expectGood(onGpus(2, 2, "reduce_perf", everything + Arguments{"-r", "all", "-u", "1"}), 2 * 12 * 6 * 5);
}

TEST(CudaPerfFull, EveryCollectiveInEveryArrangement) {
  const Arguments sweep{"-b", "8", "-e", "1M", "-f", "32", "-n", "2", "-d", "float"};
  for (const Arguments& arrangement :
       {Arguments{}, Arguments{"-t", "2"}, Arguments{"-g", "2"}, Arguments{"-t", "2", "-g", "2"},
        Arguments{"-R", "1"}, Arguments{"-G", "3"}, Arguments{"-g", "2", "-G", "2", "-R", "1"}}) {
    for (const char* program : {"all_reduce_perf", "reduce_scatter_perf", "all_gather_perf", "broadcast_perf",
                                "reduce_perf", "alltoall_perf", "gather_perf", "scatter_perf"}) {
      SCOPED_TRACE(program);
      expectGood(onGpus(8, 2, program, sweep + arrangement), 4);
    }
    for (const char* program : {"sendrecv_perf", "alltoallv_perf"}) {
      SCOPED_TRACE(program);
      expectGoodOutOfPlace(onGpus(8, 2, program, sweep + arrangement), 4);
    }
  }
}

}  // namespace
}  // namespace tutti::perf
