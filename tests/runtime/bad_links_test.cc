// Ranks on hosts that only a network joins, when that network is slow, loses packets or is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/namespace_ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Namespaces;
using BadLinks = test::NamespaceRanks;

TEST_F(BadLinks, SlowOnesAreRight) {
  Namespaces hosts(2);
  for (int index = 0; index < hosts.size(); ++index) hosts.setRate(index, 200'000'000);
  expectSuccess(run(hosts, {.per_host = 2, .arguments = {"reduce", "2000"}}));
}

TEST_F(BadLinks, OneSlowHostIsRight) {
  Namespaces hosts(3);
  hosts.setRate(1, 50'000'000);
  expectSuccess(run(hosts, {.arguments = {"reduce", "2000"}}));
  expectSuccess(run(hosts, {.arguments = {"exchange"}}));
}

TEST_F(BadLinks, LossyOnesAreRight) {
  Namespaces hosts(2);
  for (int index = 0; index < hosts.size(); ++index) hosts.setLoss(index, 0.01);
  expectSuccess(run(hosts, {.per_host = 2, .arguments = {"reduce", "2000"}}));
  expectSuccess(run(hosts, {.arguments = {"exchange"}}));
}

TEST_F(BadLinks, APulledCableThatIsPluggedInAgainHurtsNobody) {
  Namespaces hosts(3);
  const auto ranks = startAll(hosts, {.arguments = {"reduce", "4000"}});
  waitUntilReady(ranks);
  for (const int index : {1, 0}) {
    std::this_thread::sleep_for(milliseconds(500));
    hosts.setConnected(index, false);
    std::this_thread::sleep_for(seconds(1));
    hosts.setConnected(index, true);
  }
  expectSuccess(wait(ranks));
}

TEST_F(BadLinks, AWayThatSwallowsEverythingForAWhileIsNoticedAndHealed) {
  Namespaces hosts(2);
  const auto ranks = startAll(hosts, {.arguments = {"reduce", "6000"}, .common = {{"NCCL_DEBUG", "WARN"}}});
  waitUntilReady(ranks);
  std::this_thread::sleep_for(milliseconds(500));
  for (const bool is_blocked : {true, false}) {
    hosts.setBlocked(0, 1, is_blocked);
    hosts.setBlocked(1, 0, is_blocked);
    if (is_blocked) std::this_thread::sleep_for(milliseconds(4500));
  }
  const auto results = wait(ranks);
  expectSuccess(results);
  // One of them at least had sent something.
  const std::string words = "was lost (nothing was acknowledged for 2000 ms) and is made again";
  EXPECT_NE((results[0].err + results[1].err).find(words), std::string::npos)
      << results[0].err << results[1].err;
}

TEST_F(BadLinks, AReceiverThatIsStoppedIsNoSilence) {
  // Longer than a silence, and than what a broken connection may take, with more under way than it has room
  // for.
  Namespaces hosts(2);
  for (int index = 0; index < hosts.size(); ++index) {
    hosts.run(index, {"sh", "-c", "echo 4096 16384 16384 > /proc/sys/net/ipv4/tcp_rmem"});
  }
  const auto ranks = startAll(hosts, {.arguments = {"reduce", "10000"},
                                      .common = {{"NCCL_DEBUG", "WARN"}, {"TUTTI_NET_RECOVERY", "1"}}});
  waitUntilReady(ranks);
  std::this_thread::sleep_for(milliseconds(500));
  ranks[1]->kill(SIGSTOP);
  std::this_thread::sleep_for(milliseconds(8000));
  ranks[1]->kill(SIGCONT);
  const auto results = wait(ranks);
  expectSuccess(results);
  for (const auto& result : results) {
    EXPECT_EQ(result.err.find("nothing was acknowledged"), std::string::npos) << result.err;
  }
}

/// What becomes of three ranks, or four, when one of them, or a half, is cut off for good.
struct Limits {
  const char* stall;               ///< TUTTI_STALL_TIMEOUT
  const char* recovery;            ///< TUTTI_NET_RECOVERY
  std::vector<std::string> words;  ///< of the limits, one of which is passed first
  seconds most;
};

void PrintTo(const Limits& limits, std::ostream* out) { *out << limits.stall << " s"; }

class CutOff : public BadLinks, public testing::WithParamInterface<Limits> {
 protected:
  static Job job(int per_host) {
    return {
        .per_host = per_host,
        .arguments = {"reduce", "60000"},
        .common = {{"TUTTI_NET_RECOVERY", GetParam().recovery}, {"TUTTI_STALL_TIMEOUT", GetParam().stall}}};
  }

  static void expectSaysOneOf(const test::CommandResult& result, const std::vector<std::string>& words) {
    EXPECT_TRUE(std::ranges::any_of(words, [&](const std::string& some) {
      return result.err.find(some) != std::string::npos;
    })) << result.err;
  }
};

TEST_P(CutOff, APulledCableIsAnErrorOnBothSides) {
  // Rank 0 is the root of the tree that ranks tell each other by.
  for (const int lost : {0, 1}) {
    Namespaces hosts(3);
    const auto ranks = startAll(hosts, job(1));
    waitUntilReady(ranks);
    std::this_thread::sleep_for(milliseconds(300));
    hosts.setConnected(lost, false);
    const auto results = wait(ranks);
    for (int rank = 0; rank < hosts.size(); ++rank) {
      const auto& result = results[static_cast<std::size_t>(rank)];
      expectFails(result, GetParam().most);
      expectSays(result, rank == lost ? "rank " : "rank " + std::to_string(lost) + " (pid ");
      expectSaysOneOf(result, GetParam().words);
    }
  }
}

TEST_P(CutOff, ADividedNetworkIsAnErrorOnBothSides) {
  Namespaces hosts(2);
  const auto ranks = startAll(hosts, job(2));
  waitUntilReady(ranks);
  std::this_thread::sleep_for(milliseconds(300));
  hosts.setBlocked(0, 1, true);
  hosts.setBlocked(1, 0, true);
  for (const auto& result : wait(ranks)) {
    expectFails(result, GetParam().most);
    expectSaysOneOf(result, GetParam().words);
  }
}

// Who has something under way notices after 2 s, and gives up 2 s later; who has not, when a connection of
// the control plane ends, which is after 30 s.
const std::vector<std::string> kSilent{"TUTTI_NET_RECOVERY", "host cannot be reached any more"};
INSTANTIATE_TEST_SUITE_P(All, CutOff,
                         testing::Values(Limits{"3", "25", {"TUTTI_STALL_TIMEOUT"}, seconds(25)},
                                         Limits{"100", "2", kSilent, seconds(80)}));

}  // namespace
}  // namespace tutti
