// Ranks as processes: shared memory, and what happens when one of them dies, stops, never comes or differs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/rank_group.h"

namespace tutti {
namespace {

using std::chrono::seconds;
using test::Environment;
using test::expectSays;
using test::expectSuccess;
using test::IdFile;
using Group = test::RankGroup;

class Processes : public testing::TestWithParam<int> {};

TEST_P(Processes, Conform) {
  Group group(GetParam(), {"conform", "5"});
  expectSuccess(group.wait());
}

INSTANTIATE_TEST_SUITE_P(Numbers, Processes, testing::Values(2, 3, 4, 8));

class Ways : public testing::TestWithParam<const char*> {};  // of carrying out collectives

TEST_P(Ways, Conform) {
  for (const int nranks : {2, 3, 5}) {
    for (const char* process_vm : {"0", "1"}) {
      // Small buffers are lent, too: registered ones always, others where the system permits.
      Group group(nranks, {"conform", "8"},
                  {{"TUTTI_PLAN", GetParam()}, {"TUTTI_LEND_BYTES", "64"}, {"TUTTI_PROCESS_VM", process_vm}});
      expectSuccess(group.wait());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Ways, testing::Values("ring", "direct/slots", "one_shot/slots", "/packets"));

TEST(Processes, ThreadsInSeveralProcesses) {
  Group group(2, {"threads", "2"});
  expectSuccess(group.wait());
}

TEST(Processes, ConformWithLanesAndSmallSlots) {
  Group group(3, {"conform", "6"},
              {{"TUTTI_LANES", "3"}, {"TUTTI_SLOTS", "2"}, {"TUTTI_SLOT_BYTES", "1024"}});
  expectSuccess(group.wait());
}

TEST_P(Processes, Exchange) {
  Group group(GetParam(), {"exchange"});
  expectSuccess(group.wait());
}

TEST(Processes, ASenderThatDiedIsNamed) {
  Group group(3, {"receive-from-dead"});
  const auto results = group.wait();
  expectSays(results[0], "rank 2 (pid ");
  expectSays(results[0], "has not sent 40 bytes that rank 0 (pid ");
  expectSays(results[0], "died");
  EXPECT_EQ(results[1].exit_code, 0) << results[1].err;  // has no part in it
}

TEST(Processes, ASenderThatNeverSendsIsNamed) {
  Group group(2, {"receive-from-absent"}, {{"TUTTI_TIMEOUT", "0.5"}});
  group.waitUntilReady();
  const auto result = group[0].wait(seconds(60));
  expectSays(result, "rank 1 (pid ");
  expectSays(result, "has not sent 40 bytes that rank 0 (pid ");
  expectSays(result, "TUTTI_TIMEOUT = 0.5 s");
}

TEST(Processes, ASenderMayExitAfterItsSend) {
  Group group(2, {"send-and-exit"});
  expectSuccess(group.wait());
}

TEST(Processes, KilledRankIsNamedByAllOthersInTime) {
  for (int victim = 0; victim < 4; ++victim) {
    Group group(4, {"loop"});
    group.waitUntilReady();
    const std::string pid = std::to_string(group[victim].pid());
    const auto killed_at = std::chrono::steady_clock::now();
    group[victim].kill(SIGKILL);
    for (int rank = 0; rank < 4; ++rank) {
      const auto result = group[rank].wait(seconds(60));
      if (rank == victim) {
        EXPECT_EQ(result.signal, SIGKILL);
        continue;
      }
      expectSays(result, "rank " + std::to_string(victim) + " (pid " + pid + " on ");
      expectSays(result, "died");
    }
    // Generous, for loaded machines: a wait is inspected every 20 ms, and 2 s are promised. A minute is what
    // it takes where nobody notices.
    EXPECT_LT(std::chrono::steady_clock::now() - killed_at, seconds(45));
  }
}

TEST(Processes, RankThatExitsInTheMiddleIsNamed) {
  Group group(3, {"exit-early", "1"});
  const auto results = group.wait();
  expectSays(results[0], "rank 1 (pid ");
  expectSays(results[2], "rank 1 (pid ");
  EXPECT_EQ(results[1].exit_code, 0);
}

TEST(Processes, RankThatExitsAfterItsLastOperationHurtsNobody) {
  Group group(4, {"exit-after"});
  expectSuccess(group.wait());
}

TEST(Processes, RankThatNeverEntersIsNamed) {
  Group group(3, {"absent", "2"}, {{"TUTTI_TIMEOUT", "0.5"}});
  group.waitUntilReady();
  for (int rank = 0; rank < 2; ++rank) {
    const auto result = group[rank].wait(seconds(60));
    expectSays(result, "rank 2 (pid ");
  }
}

TEST(Processes, StoppedRankIsNamedByItsNeighbour) {
  Group group(2, {"loop"}, {{"TUTTI_STALL_TIMEOUT", "0.5"}, {"TUTTI_TIMEOUT", "0.7"}});
  group.waitUntilReady();
  group[1].kill(SIGSTOP);
  const auto result = group[0].wait(seconds(60));
  group[1].kill(SIGCONT);
  expectSays(result, "rank 1 (pid ");
}

TEST(Processes, StoppedRankIsNamedByAllOthers) {
  // Round the ring all wait for each other: whose deadline passes first is chance.
  for (int victim = 0; victim < 4; ++victim) {
    Group group(4, {"loop"}, {{"TUTTI_STALL_TIMEOUT", "1"}, {"TUTTI_TIMEOUT", "1"}, {"TUTTI_PLAN", "ring"}});
    group.waitUntilReady();
    group[victim].kill(SIGSTOP);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      expectSays(group[rank].wait(seconds(60)),
                 "rank " + std::to_string(victim) + " (pid " + std::to_string(group[victim].pid()) + " on ");
    }
  }
}

TEST(Processes, RankThatNeverComesIsNamed) {
  const Environment timeout{{"TUTTI_INIT_TIMEOUT", "1"}};
  const IdFile id;
  // Rank 0 of 3 alone. The rendezvous lives in this process and has the default deadline: rank 0's own ends
  // it.
  Environment environment = timeout;
  environment["TUTTI_RANK"] = "0";
  environment["TUTTI_WORLD_SIZE"] = "3";
  environment["TUTTI_ID_FILE"] = id.path();
  const auto result = test::runCommand({"rank_program"}, environment);
  expectSays(result, "TUTTI_INIT_TIMEOUT");
}

TEST(Processes, DifferentSettingsAreNamed) {
  Group group(2, {"barrier"}, {}, {{1, {{"TUTTI_SLOTS", "8"}}}});
  for (const auto& result : group.wait()) {
    expectSays(result, "TUTTI_SLOTS differs between ranks: 4 on rank 0");
    expectSays(result, "8 on rank 1");
  }
}

TEST(Processes, WrongFaultsAreRefusedOnOneHostToo) {
  Group group(2, {"barrier"}, {{"TUTTI_FAULTS", "cut:never"}});
  for (const auto& result : group.wait()) expectSays(result, "TUTTI_FAULTS=\"cut:never\": expected ");
  Group alone(1, {"barrier"}, {{"TUTTI_FAULTS", "cut:never"}});
  expectSays(alone[0].wait(), "TUTTI_FAULTS=\"cut:never\": expected ");
}

TEST(Processes, DeathDuringInitIsNamed) {
  // Rank 1 never joins, for its settings are wrong. Rank 2 joins, waits like rank 0, and is killed.
  Group group(3, {"barrier"}, {}, {{1, {{"TUTTI_SLOTS", "wrong"}}}, {2, {{"NCCL_DEBUG", "INFO"}}}});
  expectSays(group[1].wait(seconds(60)), "TUTTI_SLOTS=\"wrong\"");
  ASSERT_TRUE(group[2].waitForError("joined at the rendezvous", seconds(60)));
  group[2].kill(SIGKILL);
  const auto result = group[0].wait(seconds(60));
  expectSays(result, "rank 2 (pid " + std::to_string(group[2].pid()) + " on ");
  expectSays(result, "left while the communicator was being made");
}

TEST(Processes, LauncherVariablesAreChecked) {
  const auto says = [](const Environment& environment, const std::string& words) {
    expectSays(test::runCommand({"rank_program"}, environment), words);
  };
  says({{"TUTTI_RANK", "0"}}, "TUTTI_WORLD_SIZE is not set");
  says({{"TUTTI_RANK", "x"}, {"TUTTI_WORLD_SIZE", "2"}}, "TUTTI_RANK=\"x\"");
  says({{"TUTTI_RANK", "2"}, {"TUTTI_WORLD_SIZE", "2"}}, "expected a whole number from 0 to 1");
  says({{"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "1"}}, "TUTTI_ID_FILE is not");
  says({{"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "1"}, {"TUTTI_ID_FILE", "/nowhere"}}, "No such file");
  says({{"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "1"}, {"TUTTI_ID_FILE", "/dev/null"}}, "holds 0 bytes");
  says({{"TUTTI_SLOTS", "1"}}, "TUTTI_SLOTS=\"1\"");
}

TEST(Processes, NamesCloseToKnownOnesAreAskedAboutOnce) {
  const auto result = test::runCommand(
      {"rank_program"}, {{"NCCL_DEBUG", "INFO"}, {"TUTTI_TIMEOT", "3"}, {"NCCL_NTHREADS", "64"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const std::string words :
       {"TUTTI_TIMEOT (environment) is no variable that Tutti or NCCL knows; did you mean TUTTI_TIMEOUT?",
        "NCCL INFO NCCL_NTHREADS has no effect here"}) {
    const auto first = result.err.find(words);
    EXPECT_NE(first, std::string::npos) << words << result.err;
    EXPECT_EQ(result.err.find(words, first + 1), std::string::npos) << words << result.err;
  }
}

TEST(Processes, CallsAreLoggedWhenAskedFor) {
  const auto said = [](const char* subsystems) {
    Group group(2, {"conform-briefly", "5"}, {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", subsystems}});
    return group.wait()[0].err;
  };
  const std::string with = said("COLL");
  EXPECT_NE(with.find("NCCL INFO rank 0: AllReduce: opCount "), std::string::npos) << with;
  EXPECT_EQ(with.find("joined a communicator"), std::string::npos) << with;
  const std::string without = said("INIT");
  EXPECT_EQ(without.find("opCount"), std::string::npos) << without;
  for (const char* part : {"rank 0: joined a communicator of 2 on 1 host(s): 1 peer(s) by shm; ",
                           "; AllReduce of 8 bytes one_shot over packets, of 64 MiB direct over slots; "}) {
    EXPECT_NE(without.find(part), std::string::npos) << without;
  }
  EXPECT_NE(without.find("NCCL version "), std::string::npos) << without;
}

TEST(Processes, WithoutSharedMemoryTheNetworkIsUsed) {
  Group group(2, {"conform-briefly", "5"},
              {{"NCCL_DEBUG", "INFO"},
               {"NCCL_SHM_DISABLE", "1"},
               {"NCCL_SOCKET_IFNAME", "lo"},
               {"NCCL_NET", "Socket"}});
  for (const auto& result : group.wait()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("joined a communicator of 2 on 2 host(s): 1 peer(s) on 1 other host(s) by tcp"),
              std::string::npos)
        << result.err;
  }
}

TEST(Processes, AGroupThatIsLeftOpenIsTold) {
  for (const char* what : {"open-group", "barrier"}) {
    const auto result = test::runCommand({"rank_program", what}, {{"NCCL_DEBUG", "WARN"}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const bool is_told = (result.out + result.err).find("ncclGroupEnd is missing") != std::string::npos;
    EXPECT_EQ(is_told, what == std::string("open-group")) << result.out << result.err;
  }
}

TEST(Processes, LogGoesWhereItIsTold) {
  const auto path = std::filesystem::temp_directory_path() / ("tutti_log_" + std::to_string(::getpid()));
  const auto result = test::runCommand({"rank_program"}, {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", path}});
  EXPECT_EQ(result.exit_code, 0);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("rank 0: joined a communicator of 1"), std::string::npos) << text;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tutti
