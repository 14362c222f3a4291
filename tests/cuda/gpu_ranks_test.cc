// Ranks on GPUs, as threads of one process and as processes.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/gpus.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

using Environment = std::map<std::string, std::string>;

enum class As { threads, processes };

constexpr auto kLimit = std::chrono::minutes(5);

/// What all said. Reports a failure for each rank that did not end well, leaks included.
std::string run(As as, const std::string& scenario, int nranks, const Environment& more = {}, int gpus = 2) {
  Environment environment = environmentOfGpus(gpus, TUTTI_EMULATOR_DIR);
  environment["TUTTI_EMULATOR_CHECK_LEAKS"] = "1";
  for (const auto& [name, value] : more) environment[name] = value;
  const ScratchDirectory scratch;
  const std::vector<std::string> common{"gpu_ranks", scenario, scratch.path() + "/board",
                                        std::to_string(nranks)};
  std::vector<std::unique_ptr<Command>> commands;
  for (int rank = 0; rank < (as == As::threads ? 1 : nranks); ++rank) {
    std::vector<std::string> argv = common;
    if (as == As::processes) argv.push_back(std::to_string(rank));
    commands.push_back(std::make_unique<Command>(argv, environment));
  }
  std::string said;
  for (const auto& command : commands) {
    const CommandResult result = command->wait(kLimit);
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    said += result.out;
  }
  return said;
}

class GpuRanks : public testing::TestWithParam<As> {};

TEST_P(GpuRanks, GiveTheRightResults) { EXPECT_EQ(run(GetParam(), "collectives", 2), ""); }
TEST_P(GpuRanks, ShareGpus) { EXPECT_EQ(run(GetParam(), "collectives", 3), ""); }
TEST_P(GpuRanks, SendAndReceive) { EXPECT_EQ(run(GetParam(), "transfers", 2), ""); }
TEST_P(GpuRanks, KeepOneOrderOnTwoStreams) { run(GetParam(), "two_streams", 2); }
TEST_P(GpuRanks, ReplayGraphsAmongOtherWork) { run(GetParam(), "graph_replays", 2); }
TEST_P(GpuRanks, AreInOrderWithinACapture) { run(GetParam(), "captured_fork", 2); }
TEST_P(GpuRanks, TellSomebodyBeforeAReplay) { run(GetParam(), "woken_replays", 2); }
TEST_P(GpuRanks, WorkOnRegisteredBuffersInPlace) { run(GetParam(), "registered", 2); }
TEST_P(GpuRanks, RegisterMemoryOfTheProgram) { run(GetParam(), "own_memory", 2); }
TEST_P(GpuRanks, KnowMemoryThatPeersCannotMap) { run(GetParam(), "foreign_memory", 2); }
TEST_P(GpuRanks, StopWhenTold) { run(GetParam(), "stopped", 2); }
TEST_P(GpuRanks, NoticeAMismatch) { run(GetParam(), "mismatch", 2); }
TEST_P(GpuRanks, KnowWhatWasNotReceived) { run(GetParam(), "unreceived", 2); }
TEST_P(GpuRanks, WaitNoLongerThanTheDeadline) { run(GetParam(), "deadline", 2); }

/// What the kernel broke cannot be given back.
TEST(GpuRank, TellsThatItsKernelBroke) {
  run(As::threads, "broken", 1, {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}});
}

INSTANTIATE_TEST_SUITE_P(, GpuRanks, testing::Values(As::threads, As::processes), [](const auto& tested) {
  return tested.param == As::threads ? "Threads" : "Processes";
});

TEST(GpuReach, WithoutIpcProcessesGoByHostMemory) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  const std::string said = run(As::processes, "collectives", 2,
                               {{"TUTTI_EMULATED_FAULTS", "fail:call=cudaIpc*,error=cudaErrorNotSupported"}});
  EXPECT_NE(said.find("CUDA IPC does not work here"), std::string::npos) << said;
}

TEST(GpuReach, WithoutPeerAccessThreadsGoByHostMemory) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  const std::string said = run(As::threads, "collectives", 2, {{"TUTTI_EMULATED_PEER_ACCESS", "0"}});
  EXPECT_NE(said.find("has no peer access to GPU"), std::string::npos) << said;
}

TEST(GpuReach, WithoutPeerAccessProcessesGoByHostMemory) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  const std::string said = run(As::processes, "collectives", 2, {{"TUTTI_EMULATED_PEER_ACCESS", "0"}});
  EXPECT_NE(said.find("has no peer access to GPU"), std::string::npos) << said;
}

TEST(GpuReach, OneGpuServesAll) {
  EXPECT_EQ(run(As::threads, "collectives", 2, {}, 1), "");
  EXPECT_EQ(run(As::processes, "collectives", 2, {}, 1), "");
}

/// What ranks say that are refused, as threads; nothing of them is left.
std::string refusal(int nranks, int gpus, const Environment& more = {}) {
  Environment environment = environmentOfGpus(gpus, TUTTI_EMULATOR_DIR);
  environment["TUTTI_EMULATOR_CHECK_LEAKS"] = "1";
  for (const auto& [name, value] : more) environment[name] = value;
  const ScratchDirectory scratch;
  const CommandResult result = runCommand(
      {"gpu_ranks", "collectives", scratch.path() + "/board", std::to_string(nranks)}, environment);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  return result.err;
}

TEST(GpuReach, TooFewHardwareQueuesAreRefused) {
  const std::string said = refusal(2, 1, {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}});
  EXPECT_NE(said.find("CUDA_DEVICE_MAX_CONNECTIONS is 1"), std::string::npos) << said;
}

TEST(GpuReach, NoGpuIsToldInTheDriversWords) {
  const std::string said = refusal(1, 0);
  EXPECT_NE(said.find("no CUDA-capable device is detected"), std::string::npos) << said;
}

TEST(GpuReach, TooLittleMemoryIsTold) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  const std::string said = refusal(2, 2, {{"TUTTI_EMULATED_GPU_BYTES", "1000000"}});
  EXPECT_NE(said.find("cudaMalloc of 2097152 bytes for links: out of memory"), std::string::npos) << said;
  EXPECT_NE(said.find("1000000 of 1000000 bytes are free"), std::string::npos) << said;
}

}  // namespace
}  // namespace tutti::test
