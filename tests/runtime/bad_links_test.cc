// Ranks on hosts that only a network joins, when that network is slow, loses packets or is gone.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

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

/// What becomes of three ranks, or four, when one of them, or a half, is cut off for good.
struct Limits {
  const char* stall;  ///< TUTTI_STALL_TIMEOUT
  const char* words;  ///< of the limit that is passed first
  seconds most;
};

void PrintTo(const Limits& limits, std::ostream* out) { *out << limits.stall << " s"; }

class CutOff : public BadLinks, public testing::WithParamInterface<Limits> {
 protected:
  static Job job(int per_host) {
    return {.per_host = per_host,
            .arguments = {"reduce", "60000"},
            .common = {{"TUTTI_RECONNECT_TIMEOUT", "2"}, {"TUTTI_STALL_TIMEOUT", GetParam().stall}}};
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
      expectSays(result, GetParam().words);
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
    expectSays(result, GetParam().words);
  }
}

// A connection on which nothing is acknowledged any more ends after 30 s.
INSTANTIATE_TEST_SUITE_P(All, CutOff,
                         testing::Values(Limits{"3", "TUTTI_STALL_TIMEOUT", seconds(20)},
                                         Limits{"60", "host cannot be reached any more", seconds(50)}));

}  // namespace
}  // namespace tutti
