// Communicators on GPUs, by the C API: ranks as processes, as threads, in one thread, on two hosts.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/gpus.h"
#include "tests/harness/rank_group.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;

/// What makes programs use so many GPUs. Whatever a program leaves allocated on emulated ones makes it fail.
Environment onGpus(int gpus, Environment more = {}) {
  more.merge(environmentOfGpus(gpus, TUTTI_EMULATOR_DIR));
  more.try_emplace("TUTTI_EMULATOR_CHECK_LEAKS", "1");
  more.try_emplace("TUTTI_LANES", "2");
  more.try_emplace("TUTTI_DEVICE", "cuda");
  return more;
}

RankGroup group(int nranks, const std::vector<std::string>& arguments, const Environment& environment,
                int hosts = 1) {
  return {nranks, [&](int) { return arguments; }, environment, {}, hosts, "gpu_rank_program"};
}

CommandResult alone(const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string> command{"gpu_rank_program"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Command(command, environment).wait(seconds(100));
}

struct Arrangement {
  int nranks;
  int gpus;
  int hosts;
};

class GpuRanks : public testing::TestWithParam<Arrangement> {};
INSTANTIATE_TEST_SUITE_P(All, GpuRanks,
                         testing::Values(Arrangement{1, 1, 1}, Arrangement{2, 2, 1}, Arrangement{3, 2, 1},
                                         Arrangement{4, 4, 1}, Arrangement{2, 1, 2}, Arrangement{4, 2, 2}),
                         [](const auto& info) {
                           const Arrangement& a = info.param;
                           return std::to_string(a.nranks) + "on" + std::to_string(a.gpus) + "gpusOf" +
                                  std::to_string(a.hosts) + "hosts";
                         });

TEST_P(GpuRanks, Conform) {
  const auto [nranks, gpus, hosts] = GetParam();
  expectSuccess(group(nranks, {"conform", "7"}, onGpus(gpus), hosts).wait());
}

TEST_P(GpuRanks, Exchange) {
  const auto [nranks, gpus, hosts] = GetParam();
  expectSuccess(group(nranks, {"exchange"}, onGpus(gpus), hosts).wait());
}

TEST_P(GpuRanks, GraphsReplay) {
  const auto [nranks, gpus, hosts] = GetParam();
  expectSuccess(group(nranks, {"replay", "40"}, onGpus(gpus), hosts).wait());
}

TEST_P(GpuRanks, WorkOnSeveralStreamsIsSerial) {
  const auto [nranks, gpus, hosts] = GetParam();
  expectSuccess(group(nranks, {"streams"}, onGpus(gpus), hosts).wait());
}

TEST_P(GpuRanks, GroupsOfCommunicatorsScalarsAndCaptures) {
  const auto [nranks, gpus, hosts] = GetParam();
  expectSuccess(group(nranks, {"groups"}, onGpus(gpus), hosts).wait());
}

TEST(Gpus, GraphsReplayWhereTheyTakeNoHostFunction) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  const Environment refused{{"TUTTI_EMULATED_HOST_NODES", "0"}, {"NCCL_DEBUG", "INFO"}};
  const auto results = group(2, {"replay", "40"}, onGpus(1, refused), 2).wait();
  expectSuccess(results);
  EXPECT_NE(results[0].err.find(": rank 1 by network (tcp);"), std::string::npos) << results[0].err;
  expectSuccess(group(2, {"replay-alone", "10"}, onGpus(1, refused), 2).wait());
}

TEST(Gpus, TheEndWaitsForReplaysThatAreQueued) {
  if (!hasGpus(2)) GTEST_SKIP() << kTooFew;
  const auto result = alone({"destroy-queued"}, onGpus(2));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

class GpuPlans : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, GpuPlans, testing::Values("ring", "direct", "one_shot", "direct/packets"));

TEST_P(GpuPlans, GiveTheBitsOfTheHost) {
  const Environment plan{{"TUTTI_PLAN", GetParam()}, {"TUTTI_SLOT_BYTES", "4096"}, {"TUTTI_LANES", "1"}};
  Environment host = onGpus(1, plan);
  host["TUTTI_DEVICE"] = "host";
  const auto want = group(3, {"bits", "host"}, host).wait();
  // Among several GPUs the ring goes from neighbour to neighbour, and sums in that order.
  const int gpus = std::string_view(GetParam()) == "ring" ? 1 : 2;
  const auto got = group(3, {"bits", "gpu"}, onGpus(gpus, plan)).wait();
  expectSuccess(want);
  expectSuccess(got);
  for (std::size_t rank = 0; rank < want.size(); ++rank) {
    EXPECT_NE(want[rank].out.find("bits "), std::string::npos);
    EXPECT_EQ(got[rank].out, want[rank].out) << "rank " << rank;
  }
}

/// On the default stream, where the kernel of one rank would wait for that of another.
TEST(Gpus, RanksAsThreads) {
  if (!hasGpus(4)) GTEST_SKIP() << kTooFew;
  for (const int nranks : {2, 4}) {
    const auto result = alone({"threads", std::to_string(nranks)}, onGpus(nranks, {{"NCCL_DEBUG", "INFO"}}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string others = nranks == 2 ? "rank 1" : "ranks 1-3";
    EXPECT_NE(result.err.find(": " + others + " by peer access;"), std::string::npos) << result.err;
  }
}

TEST(Gpus, ThreadsOfTheLibraryKeepOffTheFirst) {
  if (!hasGpus(3)) GTEST_SKIP() << kTooFew;
  const auto result = alone({"leave-first"}, onGpus(3));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Gpus, OneThreadDrivesSeveral) {
  if (!hasGpus(3)) GTEST_SKIP() << kTooFew;
  const auto result = alone({"drive-all", "3"}, onGpus(3));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Gpus, RegisteredBuffersAreReadInPlace) {
  for (const int gpus : {1, 2}) {
    expectSuccess(group(2, {"register"}, onGpus(gpus, {{"TUTTI_LEND_BYTES", "1000"}})).wait());
  }
}

TEST(Gpus, ABufferThatIsFreedWhileRegisteredIsNoticed) {
  const Environment lends{{"TUTTI_LEND_BYTES", "1000"}, {"NCCL_DEBUG", "WARN"}};
  for (const auto& result : group(2, {"free-registered"}, onGpus(2, lends)).wait()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("800000 bytes at "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("were freed while registered"), std::string::npos) << result.err;
  }
}

TEST(Gpus, WithoutIpcMemoryOfTheHostIsUsedAndWhy) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  const auto results =
      group(2, {"conform", "8"},
            onGpus(2, {{"TUTTI_EMULATED_FAULTS", "fail:call=cudaIpc*,error=cudaErrorNotSupported"},
                       {"NCCL_DEBUG", "INFO"}}))
          .wait();
  expectSuccess(results);
  EXPECT_NE(results[0].err.find(": rank 1 by pinned host memory;"), std::string::npos) << results[0].err;
  EXPECT_NE(results[0].err.find("GPU memory of rank 1 (pid "), std::string::npos) << results[0].err;
  EXPECT_NE(results[0].err.find("Their links go through pinned host memory"), std::string::npos);
}

TEST(Gpus, RanksThatShareOneAreToldSo) {
  const auto results = group(2, {"once", "100"}, onGpus(1, {{"NCCL_DEBUG", "INFO"}})).wait();
  expectSuccess(results);
  EXPECT_NE(results[0].err.find("shares GPU 0 ("), std::string::npos) << results[0].err;
  EXPECT_NE(results[0].err.find(": rank 1 by CUDA IPC;"), std::string::npos) << results[0].err;
}

TEST(Gpus, WithoutPeerAccessMemoryOfTheHostIsUsed) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  expectSuccess(group(2, {"conform", "9"}, onGpus(2, {{"TUTTI_EMULATED_PEER_ACCESS", "0"}})).wait());
  const auto threads = alone({"threads", "2"}, onGpus(2, {{"TUTTI_EMULATED_PEER_ACCESS", "0"}}));
  EXPECT_EQ(threads.exit_code, 0) << threads.err;
}

TEST(Gpus, WhatTheyCannotReachIsRefused) {
  expectSuccess(group(2, {"refuse"}, onGpus(2)).wait());
  expectSuccess(group(2, {"refuse-gpu-memory"}, onGpus(1, {{"TUTTI_DEVICE", "host"}})).wait());
}

TEST(Gpus, WithoutOneTheDriverSaysWhy) {
  for (const auto& result : group(2, {"once", "100"}, onGpus(0, {{"TUTTI_DEVICE", "cuda"}})).wait()) {
    expectSays(result, "TUTTI_DEVICE=cuda, but no GPU can be used: ");
    expectSays(result, "no CUDA-capable device is detected");
  }
}

TEST(Gpus, WithoutOneHostMemoryIsUsedAndWhyIsToldOnce) {
  const auto result =
      alone({"threads-on-host"}, onGpus(0, {{"TUTTI_DEVICE", "auto"}, {"NCCL_DEBUG", "INFO"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string words = "communicators work on host memory: ";
  const auto at = result.err.find(words);
  ASSERT_NE(at, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(words, at + 1), std::string::npos) << result.err;
}

TEST(Gpus, MemoryThatDoesNotSufficeIsToldToAll) {
  if (machineGpus() != 0) GTEST_SKIP() << kInjected;
  RankGroup ranks(
      3,
      [](int) {
        return std::vector<std::string>{"once", "100"};
      },
      onGpus(2), {{1, {{"TUTTI_EMULATED_GPU_BYTES", "100000"}}}}, 1, "gpu_rank_program");
  const auto results = ranks.wait();
  for (const auto& result : results) expectSays(result, "out of memory");
  expectSays(results[0], "rank 1 (pid ");
  expectSays(results[2], "rank 1 (pid ");
}

TEST(Gpus, RanksOnGpusAndOnHostMemoryDoNotMix) {
  RankGroup mixed(
      2,
      [](int) {
        return std::vector<std::string>{"once", "100"};
      },
      onGpus(1), {{1, {{"TUTTI_DEVICE", "host"}}}}, 1, "gpu_rank_program");
  for (const auto& result : mixed.wait()) expectSays(result, "Set TUTTI_DEVICE equally on all ranks");
}

TEST(Gpus, DifferentCallsAreNamedOnBothSides) {
  for (const auto& result : group(2, {"differ"}, onGpus(2)).wait()) {
    expectSays(result, "AllReduce #1 sum float ×100");
    expectSays(result, "AllReduce #1 sum float ×50");
  }
}

TEST(Gpus, ARankThatNeverEntersIsNamed) {
  for (const int hosts : {1, 2}) {
    RankGroup ranks =
        group(3, {"absent"}, onGpus(2, {{"TUTTI_TIMEOUT", "1"}, {"TUTTI_EMULATOR_CHECK_LEAKS", "0"}}), hosts);
    for (int rank = 0; rank < 2; ++rank) expectSays(ranks[rank].wait(seconds(60)), "rank 2 (pid ");
    ranks[2].kill(SIGKILL);
  }
}

TEST(Gpus, ARankWhoseGpuFailedIsNamed) {
  for (const auto& result : group(2, {"break"}, onGpus(2, {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}})).wait()) {
    expectSays(result, "the GPU of rank 1 (pid ");
    expectSays(result, "cudaErrorLaunchFailure");
  }
}

TEST(Gpus, TheEndOfOneDoesNotWaitForKernelsOfAnother) {
  if (!hasGpus(2)) GTEST_SKIP() << kTooFew;
  // The kernel gives up, so a wait in vain ends.
  const auto result = alone({"destroy-beside"}, onGpus(2, {{"TUTTI_TIMEOUT", "20"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Gpus, NothingStaysOfManyCommunicators) {
  if (!hasGpus(2)) GTEST_SKIP() << kTooFew;
  const auto result = alone({"many", "100"}, onGpus(2));
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
}

TEST(Gpus, AResetOfTheDeviceIsFoundByWhateverCallComesNext) {
  if (!hasGpus(2)) GTEST_SKIP() << kTooFew;
  const auto result = alone({"reset-threads"}, onGpus(2));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Gpus, AResetOfTheDeviceEndsNoProcess) {
  for (const int hosts : {1, 2}) {
    for (const char* call : {"allReduce", "destroy"}) {
      SCOPED_TRACE(std::to_string(hosts) + " hosts, " + call);
      expectSuccess(group(2, {"reset", call}, onGpus(2), hosts).wait());
    }
  }
}

TEST(Gpus, AResetOfTheDeviceUnderTheEyesOfOthers) {
  if (machineGpus() != 0) GTEST_SKIP() << "CUDA does not say what becomes of calls that are under way";
  const auto result = alone({"reset-looking"}, onGpus(1));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Gpus, AKilledRankIsNamed) {
  for (const int hosts : {1, 2}) {
    RankGroup ranks = group(3, {"loop"}, onGpus(2, {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}}), hosts);
    ranks.waitUntilReady();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ranks[2].kill(SIGKILL);
    for (int rank = 0; rank < 2; ++rank) expectSays(ranks[rank].wait(seconds(60)), "rank 2 (pid ");
  }
}

TEST(Gpus, WhatIsKnownOfAnotherRankIsToldByTheNextCall) {
  for (const int hosts : {1, 2}) {
    RankGroup ranks = group(3, {"gone"}, onGpus(2, {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}}), hosts);
    for (int rank = 0; rank < 2; ++rank) {
      const auto result = ranks[rank].wait(seconds(60));
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
  }
}

TEST(Gpus, WhatAKernelPostedLastGoesOutThoughItsRankIsIdle) {
  for (int operations = 1; operations <= 10; ++operations) {
    RankGroup ranks = group(2, {"fall-idle", std::to_string(operations)},
                            onGpus(1, {{"TUTTI_EMULATOR_CHECK_LEAKS", "0"}}), 2);
    const auto result = ranks[0].wait(seconds(60));
    EXPECT_EQ(result.exit_code, 0) << operations << " operations: " << result.err;
    ranks[1].kill(SIGKILL);
  }
}

TEST(Gpus, AbortEndsAKernelThatWaits) {
  const auto results = group(2, {"abort"}, onGpus(2)).wait();
  EXPECT_EQ(results[0].exit_code, 0) << results[0].err;
}

TEST(Gpus, LanesAreBoundedAsNcclBoundsThem) {
  struct Case {
    const char* variable;
    const char* value;
    const char* lanes;
  };
  for (const auto& [variable, value, lanes] :
       {Case{"NCCL_MIN_NCHANNELS", "12", "12"}, Case{"NCCL_MIN_CTAS", "64", "16"},
        Case{"NCCL_MAX_NCHANNELS", "1", "1"}, Case{"NCCL_MAX_CTAS", "64", "2"}}) {
    const CommandResult result =
        group(1, {"once", "100"},
              onGpus(1, {{variable, value}, {"TUTTI_LANES", "auto"}, {"NCCL_DEBUG", "INFO"}}))
            .wait()[0];
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find(std::string("; ") + lanes + " lane(s) of "), std::string::npos)
        << variable << "\n"
        << result.err;
    EXPECT_EQ(result.err.find("no effect"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace tutti::test
