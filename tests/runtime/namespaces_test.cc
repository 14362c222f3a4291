// Ranks on hosts that only a network joins: who reaches whom, by which addresses, through which doors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/namespace_ranks.h"

namespace tutti {
namespace {

using std::chrono::seconds;
using test::Namespaces;
using RanksInNamespaces = test::NamespaceRanks;

/// For ranks that are to fail: the rendezvous waits half of it, which is what they have to come.
const Namespaces::Environment kImpatient{{"TUTTI_INIT_TIMEOUT", "8"}};
/// Long before the default of TUTTI_INIT_TIMEOUT has passed, and long enough for a machine that is busy.
constexpr seconds kSoon{50};

// Arrangements.

struct Arrangement {
  int hosts;
  int per_host;
};

void PrintTo(const Arrangement& a, std::ostream* out) {
  *out << a.hosts << " hosts of " << a.per_host << " ranks";
}

class Arrangements : public RanksInNamespaces, public testing::WithParamInterface<Arrangement> {};

TEST_P(Arrangements, ConformAndExchange) {
  const auto [count, per_host] = GetParam();
  const Namespaces hosts(count);
  // All are on one kernel, and yet not on one host.
  const std::string others =
      fmt::format("{} peer(s) on {} other host(s) by tcp", (count - 1) * per_host, count - 1);
  const std::string neighbours = fmt::format(": {} peer(s) by shm", per_host - 1);
  for (const auto& arguments : {std::vector<std::string>{"conform", "31"}, {"exchange"}}) {
    const auto results =
        run(hosts, {.per_host = per_host, .arguments = arguments, .common = {{"NCCL_DEBUG", "INFO"}}});
    expectSuccess(results);
    for (const auto& result : results) {
      expectSays(result, others);
      EXPECT_EQ(result.err.find(neighbours) != std::string::npos, per_host > 1) << result.err;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Arrangements,
                         testing::Values(Arrangement{2, 1}, Arrangement{2, 2}, Arrangement{3, 1}));

TEST_F(RanksInNamespaces, CommIdInsteadOfAMaster) {
  const Namespaces hosts(2);
  expectSuccess(
      run(hosts, {.arguments = {"conform", "32"},
                  .common = {{"MASTER_ADDR", ""}, {"NCCL_COMM_ID", Namespaces::address(0) + ":4711"}}}));
}

TEST_F(RanksInNamespaces, ManyCommunicatorsOfOneAddress) {
  const Namespaces hosts(2);
  expectSuccess(run(hosts, {.per_host = 2, .arguments = {"again"}}));
  const std::string where = Namespaces::address(0) + ":4711";
  expectSuccess(run(hosts, {.per_host = 2, .arguments = {"again"}, .common = {{"NCCL_COMM_ID", where}}}));
}

TEST_F(RanksInNamespaces, AJobIsStartedAgainAtTheSameAddress) {
  const Namespaces hosts(2);
  for (int time = 0; time < 3; ++time) expectSuccess(run(hosts, {.arguments = {"barrier"}}));
}

TEST_F(RanksInNamespaces, ASecondJobAtTheSameAddressDisturbsNobody) {
  const Namespaces hosts(2);
  const Job first{.arguments = {"conform", "33"}, .common = {{"NCCL_DEBUG", "INFO"}}};
  const Job second{.arguments = {"conform", "34"},
                   .common = {{"TUTTI_SECRET_FILE", secretFile("other", "known to ranks of another job")},
                              {"TUTTI_INIT_TIMEOUT", "10"}}};
  const auto first_0 = start(hosts, first, 0);
  ASSERT_TRUE(first_0->waitForError("joined at the rendezvous", seconds(60)));
  const auto second_0 = start(hosts, second, 0)->wait();
  const auto second_1 = start(hosts, second, 1)->wait();
  const auto first_1 = start(hosts, first, 1)->wait();
  expectSuccess({first_0->wait(), first_1});
  expectFails(second_0, kSoon);
  expectSays(second_0, "10.77.0.1 port 29501: Address already in use");
  expectFails(second_1, kSoon);
  expectSays(second_1, "is the secret of this rank another one?");
}

// IPv6.

class Ipv6 : public RanksInNamespaces {
 protected:
  void SetUp() override {
    RanksInNamespaces::SetUp();
    if (!std::filesystem::exists("/proc/net/if_inet6")) GTEST_SKIP() << "this kernel has no IPv6";
  }
};

TEST_F(Ipv6, RendezvousAndData) {
  const Namespaces hosts(2);
  for (int index = 0; index < hosts.size(); ++index)
    hosts.run(index, {"ip", "-4", "addr", "flush", "dev", "eth0"});
  expectSuccess(run(
      hosts,
      {.per_host = 2, .arguments = {"conform", "35"}, .common = {{"MASTER_ADDR", Namespaces::address6(0)}}}));
  const std::string where = fmt::format("[{}]:4711", Namespaces::address6(0));
  expectSuccess(run(hosts, {.arguments = {"exchange"}, .common = {{"NCCL_COMM_ID", where}}}));
}

TEST_F(Ipv6, TheFamilyOfDataCanBeAnother) {
  Namespaces hosts(2);
  // IPv4 is good for the rendezvous only.
  for (int index = 0; index < hosts.size(); ++index)
    hosts.setOpenPorts(index, {{kMasterPort + 1, kMasterPort + 1}}, "REJECT");
  expectSuccess(run(hosts, {.arguments = {"conform", "36"}, .common = {{"NCCL_SOCKET_FAMILY", "AF_INET6"}}}));
}

// Interfaces.

class Interfaces : public RanksInNamespaces {
 protected:
  void SetUp() override {
    RanksInNamespaces::SetUp();
    if (IsSkipped()) return;
    hosts_ = std::make_unique<Namespaces>(2);
    for (int index = 0; index < hosts_->size(); ++index) {
      // Of one network, which none of them leaves.
      hosts_->addInterface(index, "eth9", "10.99.0." + std::to_string(index + 1) + "/24");
    }
  }

  Results runWith(const std::string& interfaces, const Environment& more = {}) const {
    Environment common = more;
    common["NCCL_SOCKET_IFNAME"] = interfaces;
    return run(*hosts_, {.arguments = {"conform", "37"}, .common = common});
  }

  std::unique_ptr<Namespaces> hosts_;
};

TEST_F(Interfaces, TheRightOneIsTaken) {
  for (const char* names : {"", "eth0", "eth0,eth9", "^eth9", "=eth0", "10.77.0.0/16", "^10.99.0.0/24"}) {
    SCOPED_TRACE(names);
    expectSuccess(runWith(names));
  }
}

TEST_F(Interfaces, TheWrongOneIsAnError) {
  for (const char* names : {"eth9", "=eth9", "10.99.0.0/24"}) {
    for (const auto& result : runWith(names, kImpatient)) {
      expectFails(result, kSoon);
      expectSays(result, "10.99.0.");
      expectSays(result, "NCCL_SOCKET_IFNAME");
    }
  }
}

TEST_F(Interfaces, TheWrongOneOfARankIsAnErrorOfBoth) {
  for (const int wrong : {0, 1}) {
    const auto results = run(*hosts_, {.arguments = {"conform", "39"},
                                       .common = {{"TUTTI_INIT_TIMEOUT", "8"}, {"TUTTI_NET_RECOVERY", "3"}},
                                       .by_rank = {{wrong, {{"NCCL_SOCKET_IFNAME", "eth9"}}}}});
    for (const auto& result : results) {
      expectFails(result, kSoon);
      expectSays(result, fmt::format("10.99.0.{}", wrong + 1));
      expectSays(result, "NCCL_SOCKET_IFNAME");
    }
  }
}

TEST_F(Interfaces, OneThatDoesNotExistIsAnErrorWithAList) {
  for (const auto& result : runWith("ib0")) {
    expectFails(result, kSoon);
    expectSays(result, "NCCL_SOCKET_IFNAME");
    expectSays(result, "ib0");
    expectSays(result, "eth9 10.99.0.");
  }
}

// Firewalls.

class Firewalls : public RanksInNamespaces, public testing::WithParamInterface<const char*> {
 protected:
  /// Ports that this many ranks of a host need: each has one of its own.
  static constexpr int kFirst = 20000;

  static void protect(Namespaces& hosts, bool opens_range) {
    for (int index = 0; index < hosts.size(); ++index) {
      std::vector<std::pair<int, int>> open{{kMasterPort, kMasterPort + 1}};
      if (opens_range) open.emplace_back(kFirst, kFirst + 1);
      hosts.setOpenPorts(index, open, GetParam());
    }
  }
};

TEST_P(Firewalls, BlockedPortsAreNamed) {
  Namespaces hosts(2);
  protect(hosts, false);
  const auto results = run(hosts, {.arguments = {"barrier"}, .common = kImpatient});
  for (const auto& result : results) {
    expectFails(result, kSoon);
    expectSays(result, "10.77.0.");
    expectSays(result, "TUTTI_PORT_RANGE");
  }
}

TEST_P(Firewalls, OpenPortsAreEnough) {
  Namespaces hosts(2);
  protect(hosts, true);
  const std::string range = std::to_string(kFirst) + "-" + std::to_string(kFirst + 1);
  expectSuccess(
      run(hosts, {.per_host = 2, .arguments = {"conform", "38"}, .common = {{"TUTTI_PORT_RANGE", range}}}));
}

INSTANTIATE_TEST_SUITE_P(All, Firewalls, testing::Values("DROP", "REJECT"));

}  // namespace
}  // namespace tutti
