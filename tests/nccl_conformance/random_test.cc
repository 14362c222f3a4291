// nccl_random as it is run: over threads, processes, hosts and emulated GPUs; what it must find.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

CommandResult run(const Arguments& arguments, Environment environment = {}) {
  environment.insert({{"TUTTI_TIMEOUT", "100"}, {"TUTTI_INIT_TIMEOUT", "100"}});
  return runCommand(arguments, environment, std::chrono::seconds(280));
}

void succeeds(const CommandResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find(": all right"), std::string::npos) << result.out << result.err;
}

/// nccl_random as processes, with a file to meet by.
void succeedsInProcesses(Arguments launcher) {
  const ScratchDirectory directory;
  for (const char* word : {"nccl_random", "--runs", "8", "--seed", "300", "--id-file"})
    launcher.emplace_back(word);
  launcher.push_back(directory.path() + "/id");
  succeeds(run(launcher));
}

TEST(Random, Threads) { succeeds(run({"nccl_random", "--runs", "25"})); }
TEST(Random, Processes) { succeedsInProcesses({"tutti-run", "-n", "4"}); }
TEST(Random, TwoHosts) { succeedsInProcesses({"tutti-run", "--hosts", "2", "-n", "4"}); }
TEST(RandomFull, LongerInThreads) { succeeds(run({"nccl_random", "--seconds", "30", "--seed", "1000"})); }

/// The same seed gives the same program.
TEST(Random, IsReplayed) {
  const auto once = run({"nccl_random", "--seed", "42", "--runs", "2"});
  succeeds(once);
  EXPECT_EQ(once.out, run({"nccl_random", "--seed", "42", "--runs", "2"}).out);
  EXPECT_EQ(once.out.find("seed 42: "), 0U) << once.out;
}

#ifdef TUTTI_PLANTED_LIBRARY
TEST(Random, FindsWhatIsPlanted) {
  for (const char* mistake : {"signed_max", "last_element", "old_message"}) {
    const auto found = run({"nccl_random", "--runs", "500"},
                           {{"LD_PRELOAD", TUTTI_PLANTED_LIBRARY}, {"NCCL_PLANTED", mistake}});
    EXPECT_EQ(found.exit_code, 1) << mistake << " was not found";
    EXPECT_NE(found.err.find("nccl_random --seed "), std::string::npos) << found.err;
    EXPECT_NE(found.err.find("byte "), std::string::npos) << found.err;
  }
}
#endif

#ifdef TUTTI_EMULATED
TEST(Random, EmulatedGpus) {
  succeeds(run({"tutti-run", "--emulate-gpus", "4", "-n", "1", "nccl_random_cuda", "--runs", "4"},
               {{"TUTTI_DEVICE", "auto"}, {"TUTTI_EMULATOR_CHECK_LEAKS", "1"}}));
}
#endif

}  // namespace
}  // namespace tutti::test
