// Ranks on several hosts: what differs on the outside from ranks on one is only the medium between them.
// Hosts are pretended (NCCL_HOSTID), so that all TCP runs over loopback; tests/runtime/namespaces_test.cc has
// real networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/harness/rank_group.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::CommandResult;
using test::Environment;
using test::expectSays;
using test::expectSuccess;
using test::RankGroup;

/// Before the deadlines that end what nobody has noticed; a second at most where nothing else runs.
constexpr seconds kSoon{45};

struct Arrangement {
  int nranks;
  int hosts;
};

void PrintTo(const Arrangement& a, std::ostream* out) {
  *out << a.nranks << " ranks on " << a.hosts << " hosts";
}

class Hosts : public testing::TestWithParam<Arrangement> {};

TEST_P(Hosts, Conform) {
  const auto [nranks, hosts] = GetParam();
  RankGroup group(nranks, {"conform", "9"}, {}, {}, hosts);
  expectSuccess(group.wait());
}

TEST_P(Hosts, Exchange) {
  const auto [nranks, hosts] = GetParam();
  RankGroup group(nranks, {"exchange"}, {}, {}, hosts);
  expectSuccess(group.wait());
}

INSTANTIATE_TEST_SUITE_P(All, Hosts,
                         testing::Values(Arrangement{2, 2}, Arrangement{3, 2}, Arrangement{4, 2},
                                         Arrangement{6, 3}, Arrangement{5, 5}, Arrangement{8, 2},
                                         Arrangement{5, 3}));  // the last host has fewer ranks

class WaysBetweenHosts : public testing::TestWithParam<const char*> {};

TEST_P(WaysBetweenHosts, Conform) {
  for (const auto& [nranks, hosts] : {Arrangement{2, 2}, Arrangement{4, 2}, Arrangement{6, 3}}) {
    // Few and small slots: rings wrap, windows fill, credits matter.
    RankGroup group(nranks, {"conform", "10"},
                    {{"TUTTI_PLAN", GetParam()},
                     {"TUTTI_SLOTS", "2"},
                     {"TUTTI_SLOT_BYTES", "1024"},
                     {"TUTTI_CHECKSUM", "1"}},
                    {}, hosts);
    expectSuccess(group.wait());
  }
}

INSTANTIATE_TEST_SUITE_P(All, WaysBetweenHosts,
                         testing::Values("ring", "direct", "one_shot", "hierarchical"));

TEST(Hosts, LanesHaveConnectionsOfTheirOwn) {
  RankGroup group(4, {"conform", "11"}, {{"TUTTI_LANES", "3"}}, {}, 2);
  expectSuccess(group.wait());
}

TEST(Hosts, ARankThatComputesAfterItsCallHoldsUpNobody) {
  // What it sent last, and the credits it owes, are moved while it is away: computing, asleep, or in no call
  // at all.
  for (const char* away : {"compute", "sleep"}) {
    RankGroup group(4, {"away", away}, {{"TUTTI_TIMEOUT", "40"}}, {}, 2);
    expectSuccess(group.wait());
  }
}

TEST(Hosts, KilledRankIsNamedByAllOthersInTime) {
  for (const auto& [nranks, hosts] : {Arrangement{2, 2}, Arrangement{4, 2}, Arrangement{4, 4}}) {
    for (int victim = 0; victim < nranks; ++victim) {
      RankGroup group(nranks, {"loop"}, {}, {}, hosts);
      group.waitUntilReady();
      const std::string pid = std::to_string(group[victim].pid());
      const auto killed_at = std::chrono::steady_clock::now();
      group[victim].kill(SIGKILL);
      for (int rank = 0; rank < nranks; ++rank) {
        if (rank == victim) continue;
        expectSays(group[rank].wait(seconds(60)), "rank " + std::to_string(victim) + " (pid " + pid + " on ");
      }
      EXPECT_LT(std::chrono::steady_clock::now() - killed_at, kSoon);
    }
  }
}

TEST(Hosts, StoppedRankIsNamed) {
  for (int victim = 0; victim < 4; ++victim) {
    RankGroup group(4, {"loop"}, {{"TUTTI_STALL_TIMEOUT", "3"}, {"TUTTI_TIMEOUT", "3"}}, {}, 2);
    group.waitUntilReady();
    group[victim].kill(SIGSTOP);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      expectSays(group[rank].wait(seconds(60)), "rank " + std::to_string(victim) + " (pid ");
    }
    group[victim].kill(SIGKILL);
  }
}

TEST(Hosts, StoppedRankIsNamedByWhoWaitsForOthersThatWaitForIt) {
  RankGroup group(5, {"chain"}, {{"TUTTI_TIMEOUT", "3"}, {"TUTTI_STALL_TIMEOUT", "3"}}, {}, 5);
  group.waitUntilReady();
  for (int rank = 1; rank < 5; ++rank) {
    expectSays(group[rank].wait(seconds(60)), "rank 0 (pid " + std::to_string(group[0].pid()));
  }
}

/// `victim` stops itself after its calls, and is woken every two seconds; the others wait for it.
void expectWaitedFor(const char* plan, int victim) {
  RankGroup group(4, {"stop-after-calls", std::to_string(victim)},
                  {{"TUTTI_STALL_TIMEOUT", "30"}, {"TUTTI_TIMEOUT", "30"}, {"TUTTI_PLAN", plan}}, {}, 2);
  std::jthread waker([&](const std::stop_token& is_over) {
    for (int tenths = 1; !is_over.stop_requested(); ++tenths) {
      std::this_thread::sleep_for(milliseconds(100));
      if (tenths % 20 == 0) group[victim].kill(SIGCONT);
    }
  });
  std::vector<CommandResult> results(4);
  for (const int rank : {0, 1, 2, 3}) {
    if (rank != victim) results[static_cast<std::size_t>(rank)] = group[rank].wait(seconds(60));
  }
  results[static_cast<std::size_t>(victim)] = group[victim].wait(seconds(60));
  waker.request_stop();
  expectSuccess(results);
}

TEST(Hosts, ARankThatIsStoppedAfterItsCallsIsWaitedFor) {
  // Longer than its silence needs to be noticed, shorter than the deadlines.
  for (const char* plan : {"ring", "hierarchical"}) {
    for (const int victim : {0, 3}) expectWaitedFor(plan, victim);
  }
}

TEST(Hosts, RankThatNeverEntersIsNamed) {
  RankGroup group(4, {"absent", "2"}, {{"TUTTI_TIMEOUT", "1"}}, {}, 2);
  group.waitUntilReady();
  for (const int rank : {0, 1, 3}) {
    expectSays(group[rank].wait(seconds(60)), "rank 2 (pid " + std::to_string(group[2].pid()));
  }
}

TEST(Hosts, DifferentArgumentsAreNamedOnBothSides) {
  for (const char* how : {"count", "type", "op", "root", "collective"}) {
    RankGroup group(4, {"differ", how}, {}, {}, 2);
    group.waitUntilReady();
    const std::string pid = std::to_string(group[3].pid());
    const auto since = std::chrono::steady_clock::now();
    for (int rank = 0; rank < 4; ++rank) {
      const auto result = group[rank].wait(seconds(60));
      expectSays(result, "the ranks called different operations");
      expectSays(result, "rank 3 (pid " + pid);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - since, kSoon);
  }
}

TEST(Hosts, RankThatExitsAfterItsLastOperationHurtsNobody) {
  RankGroup group(4, {"exit-after", "exit"}, {}, {}, 2);
  expectSuccess(group.wait());
}

TEST(Hosts, WhatWasSentArrivesThoughItsSenderLeft) {
  for (const int nranks : {2, 3}) {
    for (const char* slot_bytes : {"1024", "16384", "131072"}) {
      RankGroup group(
          nranks, {"receive-from-left"},
          {{"TUTTI_SLOT_BYTES", slot_bytes}, {"TUTTI_TIMEOUT", "40"}, {"TUTTI_STALL_TIMEOUT", "40"}}, {},
          nranks);
      expectSuccess(group.wait());
    }
  }
}

TEST(Hosts, WhatNobodyReceivedHoldsUpNoEndAndIsToldInsideAHost) {
  for (const auto& [nranks, hosts] :
       {Arrangement{2, 1}, Arrangement{3, 1}, Arrangement{2, 2}, Arrangement{3, 3}}) {
    RankGroup group(nranks, {"send-to-left"}, {{"NCCL_DEBUG", "WARN"}}, {{0, {{"TUTTI_STALL_TIMEOUT", "3"}}}},
                    hosts);
    const auto results = group.wait();
    if (hosts == 1) {
      expectSays(results[0], "4000 bytes that this rank sent for ");
      expectSays(results[0], "were never received: rank " + std::to_string(nranks - 1) + " (pid ");
    } else {
      EXPECT_EQ(results[0].exit_code, 0) << results[0].err;
    }
    // It does not wait for the rank that has left.
    const std::string said = results[0].out + results[0].err;
    EXPECT_NE(said.find("NCCL WARN"), std::string::npos) << said;
    EXPECT_EQ(said.find("has not reached"), std::string::npos) << said;
    for (int rank = 1; rank < nranks; ++rank) EXPECT_EQ(results[static_cast<std::size_t>(rank)].exit_code, 0);
  }
}

TEST(Hosts, ASenderThatDiedIsNamed) {
  RankGroup group(3, {"receive-from-dead"}, {}, {}, 3);
  const auto results = group.wait();
  expectSays(results[0], "rank 2 (pid ");
  expectSays(results[0], "has not sent 40 bytes that rank 0 (pid ");
}

TEST(Hosts, AnIdleRankHearsWhatBecameOfTheOthers) {
  for (const auto& [nranks, hosts] : {Arrangement{2, 1}, Arrangement{3, 1}, Arrangement{2, 2},
                                      Arrangement{4, 2}, Arrangement{4, 4}, Arrangement{6, 2}}) {
    for (const char* how : {"abort", "killed", "leave"}) {
      SCOPED_TRACE(testing::Message() << nranks << " ranks on " << hosts << " hosts: " << how);
      RankGroup group(nranks, {"watch", how}, {}, {}, hosts);
      const int last = nranks - 1;
      ASSERT_TRUE(group[last].waitForOutput("watched", seconds(60)));
      if (std::string(how) == "killed") group[last].kill(SIGKILL);
      for (int rank = 0; rank < last; ++rank) {
        const auto result = group[rank].wait(seconds(60));
        EXPECT_EQ(result.exit_code, 0) << "rank " << rank << ": " << result.err;
      }
    }
  }
}

TEST(Hosts, ADeathIsNoticedThoughTheRootOfTheTreeHasLeft) {
  RankGroup group(4, {"root-left"}, {{"TUTTI_TIMEOUT", "60"}}, {}, 2);
  const auto since = std::chrono::steady_clock::now();
  expectSays(group[1].wait(seconds(50)), "rank 3 (pid ");
  EXPECT_LT(std::chrono::steady_clock::now() - since, seconds(40));
}

/// A fault that came too late to meet anything would prove nothing.
bool hasHealed(const std::vector<CommandResult>& results) {
  return std::ranges::any_of(results, [](const CommandResult& result) {
    return result.err.find("and is made again") != std::string::npos;
  });
}

TEST(Hosts, CutConnectionsHeal) {
  for (const char* faults : {"cut:every=30000", "cut:every=777777", "delay:ms=1", "stall:at=50000,ms=300"}) {
    // A slot has to fit between two cuts.
    RankGroup group(4, {"conform", "12"},
                    {{"TUTTI_FAULTS", faults}, {"TUTTI_SLOT_BYTES", "8192"}, {"NCCL_DEBUG", "WARN"}}, {}, 2);
    const auto results = group.wait();
    expectSuccess(results);
    EXPECT_TRUE(hasHealed(results) || !std::string_view(faults).starts_with("cut")) << faults;
  }
}

TEST(Hosts, CorruptionIsFoundAndHealed) {
  RankGroup group(4, {"conform", "13"},
                  {{"TUTTI_FAULTS", "corrupt:at=100000"}, {"TUTTI_CHECKSUM", "1"}, {"NCCL_DEBUG", "WARN"}},
                  {}, 2);
  const auto results = group.wait();
  expectSuccess(results);
  EXPECT_TRUE(hasHealed(results));
}

}  // namespace
}  // namespace tutti
