// Communicators on GPUs that are split, shrunk and revoked, also while kernels wait: ranks as threads, as
// processes, on two hosts. And the settings that NCCL's users know for how GPUs are connected.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/harness/gpus.h"
#include "tests/harness/rank_group.h"

namespace tutti::test {
namespace {

Environment onGpus(int gpus, Environment more = {}) {
  more.merge(environmentOfGpus(gpus, TUTTI_EMULATOR_DIR));
  more.try_emplace("TUTTI_EMULATOR_CHECK_LEAKS", "1");
  more.try_emplace("TUTTI_LANES", "2");
  more.try_emplace("TUTTI_DEVICE", "cuda");
  return more;
}

RankGroup group(int nranks, const std::string& program, const std::vector<std::string>& arguments,
                const Environment& environment, int hosts = 1,
                const std::map<int, Environment>& per_rank = {}) {
  return {nranks, [&](int) { return arguments; }, environment, per_rank, hosts, program};
}

enum class As { threads, processes, hosts };

class GpuSubgroups : public testing::TestWithParam<As> {
 protected:
  static void run(const std::string& what) {
    if (GetParam() == As::threads) {
      if (!hasGpus(3)) GTEST_SKIP() << kTooFew;
      const auto result =
          Command({"gpu_subgroup_program", what, "threads", "3"}, onGpus(3)).wait(std::chrono::seconds(100));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return;
    }
    // On two hosts two of the ranks have a network between them, and two not.
    const int hosts = GetParam() == As::hosts ? 2 : 1;
    const int nranks = GetParam() == As::hosts ? 4 : 3;
    // A process that ends does not wait for others to let go of its memory.
    std::map<int, Environment> per_rank;
    if (what.starts_with("shrink")) per_rank[nranks - 1] = {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}};
    expectSuccess(group(nranks, "gpu_subgroup_program", {what}, onGpus(2), hosts, per_rank).wait());
  }
};
INSTANTIATE_TEST_SUITE_P(, GpuSubgroups, testing::Values(As::threads, As::processes, As::hosts),
                         [](const auto& tested) {
                           return tested.param == As::threads     ? "Threads"
                                  : tested.param == As::processes ? "Processes"
                                                                  : "Hosts";
                         });

TEST_P(GpuSubgroups, OutliveTheirParent) { run("split"); }
TEST_P(GpuSubgroups, LeaveOneOut) { run("shrink"); }
TEST_P(GpuSubgroups, LeaveOneOutThatKernelsWaitFor) { run("shrink-at-work"); }
TEST_P(GpuSubgroups, FollowARevokedOne) { run("revoke"); }

TEST(GpuSubgroup, LeavesOutWhoDied) {
  for (const int hosts : {1, 2}) {
    SCOPED_TRACE(std::to_string(hosts) + " hosts");
    expectSuccess(group(3, "gpu_subgroup_program", {"shrink-after-death"}, onGpus(2), hosts).wait());
  }
}

/// A kernel that waits keeps no thread from splitting later: so only TUTTI_INIT_TIMEOUT ends it, of the rank
/// that has the shortest. All name both calls.
TEST(GpuSubgroup, ARankThatCallsSomethingElseThanTheSplitIsNamedWithIt) {
  const std::map<int, Environment> impatient = {{0, {{"TUTTI_INIT_TIMEOUT", "16"}}}};
  const auto results = group(3, "gpu_subgroup_program", {"differ"},
                             onGpus(2, {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}}), 1, impatient)
                           .wait();
  for (const auto& result : results) {
    test::expectSays(result, "AllReduce #2 sum float ×3000");
    test::expectSays(result, "ncclCommSplit");
    test::expectSays(result, "rank 2 (pid ");
    EXPECT_EQ(result.err.find("destroyed"), std::string::npos) << result.err;
  }
}

/// What rank 0 says of how it is connected, after results that are right.
std::string joined(Environment more, int hosts = 1) {
  more["NCCL_DEBUG"] = "INFO";
  const auto results =
      group(2, "gpu_rank_program", {"once", "200000"}, onGpus(2, std::move(more)), hosts).wait();
  expectSuccess(results);
  const std::string& said = results[0].err;
  const auto at = said.find("joined a communicator of 2");
  if (at == std::string::npos) return said;
  return said.substr(at, said.find('\n', at) - at);
}

void expectSays(const std::string& line, const std::string& words) {
  EXPECT_NE(line.find(words), std::string::npos) << "expected: " << words << "\ngot: " << line;
}

TEST(GpuSettings, P2pDisable) {
  expectSays(joined({}), "rank 1 by CUDA IPC;");
  expectSays(joined({{"NCCL_P2P_DISABLE", "1"}}), "rank 1 by pinned host memory;");
  expectSays(joined({{"NCCL_P2P_LEVEL", "LOC"}}), "rank 1 by pinned host memory;");
  // Emulated GPUs have a CPU between them.
  expectSays(joined({{"NCCL_P2P_LEVEL", "PXB"}}), "rank 1 by pinned host memory;");
  expectSays(joined({{"NCCL_P2P_LEVEL", "PHB"}}), "rank 1 by CUDA IPC;");
}

/// It is about host memory.
TEST(GpuSettings, ShmDisable) {
  expectSays(joined({{"NCCL_SHM_DISABLE", "1"}}), "rank 1 by CUDA IPC;");
  expectSays(joined({{"NCCL_SHM_DISABLE", "1"}, {"NCCL_P2P_DISABLE", "1"}}), "rank 1 by pinned host memory;");
}

TEST(GpuSettings, ChannelsAreLanes) {
  // Two for the one ring that the PCI links of emulated GPUs carry.
  expectSays(joined({{"TUTTI_LANES", "auto"}, {"NCCL_MAX_NCHANNELS", "3"}}), " 2 lane(s) of ");
  expectSays(joined({{"TUTTI_LANES", "auto"}, {"NCCL_MIN_NCHANNELS", "11"}, {"NCCL_BUFFSIZE", "65536"}}),
             " 11 lane(s) of ");
  expectSays(joined({{"TUTTI_LANES", "auto"}, {"NCCL_MAX_NCHANNELS", "1"}}, 2), " 1 lane(s) of ");
}

TEST(GpuSettings, BuffsizeIsThatOfALinksSlots) {
  for (const long bytes : {65536L, 1048576L}) {
    const std::string line = joined({{"NCCL_BUFFSIZE", std::to_string(bytes)}});
    std::smatch found;
    ASSERT_TRUE(std::regex_search(line, found, std::regex("of ([0-9]+) slots of ([0-9]+) bytes"))) << line;
    const long all = std::stol(found[1]) * std::stol(found[2]);
    EXPECT_LE(all, bytes) << line;
    EXPECT_GT(all, bytes / 2) << line;
  }
}

}  // namespace
}  // namespace tutti::test
