// Ranks on hosts that RDMA joins: run by tests/softroce/guest, in a virtual machine with Soft-RoCE devices,
// two hosts of two ports each. Host h has on rail r the device hHrR.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "tests/harness/scratch_directory.h"
#include "tests/softroce/rdma_ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::byRdma;
using test::Command;
using test::CommandResult;
using test::Environment;
using test::expectSuccess;
using test::RankGroup;
using test::runCommand;

constexpr int kHosts = test::kRdmaHosts;

RankGroup ranks(int nranks, const std::vector<std::string>& arguments, const Environment& more = {},
                int rails = 1) {
  return test::rdmaRanks(nranks, arguments, more, rails);
}

void sh(const std::string& line) {
  const CommandResult result = runCommand({"sh", "-c", line});
  ASSERT_EQ(result.exit_code, 0) << line << ": " << result.err;
}

/// Two ranks that reduce until they are told to end, so that whatever befalls their links befalls them in the
/// midst of it.
class Reducing {
 public:
  explicit Reducing(const Environment& more,
                    const std::map<int, Environment>& devices = test::rdmaDevicesOf(2))
      : group_(2, {"reduce-until", folder_.path() + "/end"}, byRdma(more), devices, kHosts) {
    for (const int rank : {0, 1})
      EXPECT_TRUE(group_[rank].waitForOutput("reducing", seconds(60))) << "rank " << rank;
  }

  /// One of them, or both.
  void waitUntilTold(const std::string& words) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!group_[0].waitForError(words, milliseconds(50)) &&
           !group_[1].waitForError(words, milliseconds(50)))
      if (std::chrono::steady_clock::now() > deadline) return;
  }

  std::vector<CommandResult> end() {
    folder_.write("end", "");
    return group_.wait();
  }

 private:
  const test::ScratchDirectory folder_;
  RankGroup group_;
};

/// What a test does to links is undone after it.
class Rdma : public testing::Test {
 protected:
  ~Rdma() override {
    for (const char* link : {"h0r0", "h0r1", "h1r0", "h1r1"}) {
      runCommand({"ip", "link", "set", link, "up"});
      runCommand({"tc", "qdisc", "del", "dev", link, "root"});
    }
    for (int i = 0; i < 50 && !areAllUp(); ++i) std::this_thread::sleep_for(milliseconds(100));
  }

  static bool areAllUp() {
    const CommandResult result = runCommand({"rdma", "link"});
    std::size_t active = 0;
    for (std::size_t at = 0; (at = result.out.find("ACTIVE", at)) != std::string::npos; ++at) ++active;
    return active == 4;
  }
};

using Smoke = Rdma;

TEST_F(Smoke, RanksOnTwoHostsConform) {
  auto group = ranks(2, {"conform", "21"});
  expectSuccess(group.wait());
}

TEST_F(Rdma, SharedMemoryInsideAndRdmaBetweenConform) {
  auto group = ranks(4, {"conform", "22"});
  expectSuccess(group.wait());
}

TEST_F(Rdma, FewSmallSlotsWithChecksumsConform) {
  for (const char* plan : {"ring", "direct", "one_shot", "hierarchical"}) {
    auto group = ranks(
        4, {"conform", "23"},
        {{"TUTTI_PLAN", plan}, {"TUTTI_SLOTS", "2"}, {"TUTTI_SLOT_BYTES", "8192"}, {"TUTTI_CHECKSUM", "1"}});
    expectSuccess(group.wait());
  }
}

TEST_F(Rdma, LanesAndQueuePairsConform) {
  auto group = ranks(2, {"conform", "24"}, {{"TUTTI_LANES", "3"}, {"NCCL_IB_QPS_PER_CONNECTION", "4"}});
  expectSuccess(group.wait());
}

TEST_F(Rdma, BothPortsConform) {
  auto group = ranks(2, {"conform", "25"}, {{"TUTTI_LANES", "2"}}, 2);
  expectSuccess(group.wait());
}

TEST_F(Rdma, Exchange) {
  auto group = ranks(4, {"exchange"});
  expectSuccess(group.wait());
}

TEST_F(Rdma, WhoIsLateIsNotTakenForGoneAfterTheRootHasLeft) {
  auto group = ranks(4, {"root-left-late"});
  expectSuccess(group.wait());
}

TEST_F(Rdma, LossAndDelayHurtNobody) {
  for (const char* link : {"h0r0", "h1r0"})
    sh(std::string("tc qdisc add dev ") + link + " root netem loss 1% delay 5ms");
  auto group = ranks(2, {"reduce", "3000"});
  expectSuccess(group.wait());
}

TEST_F(Rdma, AnInterruptionIsHealed) {
  Reducing ranks(Environment{});
  for (const char* link : {"h1r0", "h0r0"}) {
    sh(std::string("ip link set ") + link + " down");
    std::this_thread::sleep_for(milliseconds(1000));
    sh(std::string("ip link set ") + link + " up");
    std::this_thread::sleep_for(milliseconds(1000));
  }
  expectSuccess(ranks.end());
}

TEST_F(Rdma, AnotherPortTakesOver) {
  Reducing ranks({{"NCCL_DEBUG", "WARN"}}, test::rdmaDevicesOf(2, 2));
  sh("ip link set h1r0 down");
  ranks.waitUntilTold("goes on from h0r1:1");
  const auto results = ranks.end();
  expectSuccess(results);
  EXPECT_NE((results[0].err + results[1].err).find("goes on from h0r1:1"), std::string::npos)
      << results[0].err << results[1].err;
}

TEST_F(Rdma, AnAddressThatChangesIsReadAgain) {
  sh("echo 1 >/proc/sys/net/ipv4/conf/h1r0/promote_secondaries");
  Reducing ranks(Environment{{"NCCL_DEBUG", "WARN"}});
  sh("ip address add 10.77.0.9/24 dev h1r0 && ip address del 10.77.0.2/24 dev h1r0");
  ranks.waitUntilTold("goes on from");
  const auto results = ranks.end();
  sh("ip address add 10.77.0.2/24 dev h1r0 && ip address del 10.77.0.9/24 dev h1r0");
  expectSuccess(results);
  const std::string said = results[0].err + results[1].err;
  for (const char* part : {"RDMA h1r0:1: the port's addresses changed (IBV_EVENT_GID_CHANGE)",
                           "GID 10.77.0.2 (RoCE v2, index 1) is gone", "goes on from", " 10.77.0.9 (RoCE v2"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST_F(Rdma, AnInterfaceThatVanishesIsReplaced) {
  // A rail of its own, since it cannot be brought back while anybody uses its devices.
  sh("ip link add h0r2 mtu 9000 type veth peer name h1r2 mtu 9000");
  sh("for host in 0 1; do link=h${host}r2; (cd /proc/sys/net/ipv4/conf/$link"
     " && echo 1 >accept_local && echo 0 >rp_filter && echo 1 >arp_ignore && echo 2 >arp_announce)"
     " && ip address add 10.77.2.$((host + 1))/24 dev $link && ip link set $link up"
     " && rdma link add $link type rxe netdev $link || exit 1; done");
  auto environments = test::rdmaDevicesOf(2);
  for (auto& [rank, environment] : environments)
    environment["NCCL_IB_HCA"] += ",h" + std::to_string(rank) + "r2";
  // Lanes begin with different ports.
  Reducing ranks({{"NCCL_DEBUG", "INFO"}, {"TUTTI_LANES", "2"}}, environments);
  // And with it h0r2, at the other end of the cable. The kernel waits until nobody uses their devices any
  // more.
  Command removal({"ip", "link", "delete", "h1r2"});
  ranks.waitUntilTold("goes on from h0r0:1 10.77.0.1");
  const auto results = ranks.end();
  EXPECT_EQ(removal.wait(seconds(60)).exit_code, 0);
  expectSuccess(results);
  // Which of its ends is noticed first, and how, is a matter of chance.
  const std::string said = results[0].err + results[1].err;
  EXPECT_NE(said.find(" broke ("), std::string::npos) << said;
  EXPECT_NE(said.find("goes on from h0r0:1 10.77.0.1"), std::string::npos) << said;
}

TEST_F(Rdma, ALinkThatStaysDownIsAnErrorThatSaysWhere) {
  Reducing ranks(Environment{{"TUTTI_NET_RECOVERY", "3"}});
  sh("ip link set h1r0 down");
  ranks.waitUntilTold("TUTTI_NET_RECOVERY");
  const auto results = ranks.end();
  for (const CommandResult& result : results) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("RDMA"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("TUTTI_NET_RECOVERY"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(" for 3000 ms"), std::string::npos) << result.err;
  }
}

TEST_F(Rdma, APortThatIsDownFromTheStartIsLeftOut) {
  sh("ip link set h1r0 down");
  for (const CommandResult& result : ranks(2, {"barrier"}).wait())
    test::expectSays(result, "can use no RDMA port: h");
  auto by_other = ranks(2, {"conform-briefly", "26"}, {{"NCCL_DEBUG", "INFO"}}, 2);
  for (const CommandResult& result : by_other.wait()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("r1:1 10.77.1."), std::string::npos) << result.err;
  }
}

TEST_F(Rdma, WhereQueuePairsCannotBeMadeTcpIsUsedUnlessForbidden) {
  // A control group that has used its queue pairs up.
  sh("mkdir -p /sys/fs/cgroup && (mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup)");
  sh("cd /sys/fs/cgroup && echo +rdma >cgroup.subtree_control && mkdir -p few && "
     "echo 'h1r0 hca_object=2' >few/rdma.max");
  const auto run = [](const Environment& environment) {
    const test::IdFile id;
    std::vector<std::unique_ptr<Command>> both;
    for (int rank = 0; rank < 2; ++rank) {
      auto mine = environment;
      mine.insert({{"TUTTI_RANK", std::to_string(rank)},
                   {"TUTTI_WORLD_SIZE", "2"},
                   {"TUTTI_ID_FILE", id.path()},
                   {"NCCL_HOSTID", "host" + std::to_string(rank)},
                   {"NCCL_SOCKET_IFNAME", "lo"},
                   {"NCCL_IB_HCA", "=h" + std::to_string(rank) + "r0"}});
      const std::string enter = rank == 1 ? "echo $$ >/sys/fs/cgroup/few/cgroup.procs && " : "";
      both.push_back(std::make_unique<Command>(
          std::vector<std::string>{"sh", "-c", enter + "exec " + TUTTI_BIN_DIR + "/rank_program barrier"},
          mine));
    }
    return std::vector{both[0]->wait(seconds(60)), both[1]->wait(seconds(60))};
  };
  const auto by_tcp = run({{"NCCL_DEBUG", "INFO"}});
  for (const CommandResult& result : by_tcp) EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part :
       {"by tcp (no RDMA: h1r0:1: making a queue pair with ", "Resource temporarily unavailable"})
    EXPECT_NE(by_tcp[1].err.find(part), std::string::npos) << by_tcp[1].err;
  for (const CommandResult& result : run({{"NCCL_NET", "IB"}}))
    test::expectSays(result, "NCCL_NET=IB, but rank 1");
}

TEST_F(Rdma, AKilledRankIsNamed) {
  auto group = ranks(4, {"loop"});
  group.waitUntilReady();
  std::this_thread::sleep_for(milliseconds(500));
  group[2].kill(SIGKILL);
  const auto results = group.wait();
  for (const int rank : {0, 1, 3}) test::expectSays(results[static_cast<std::size_t>(rank)], "rank 2 (pid ");
}

TEST_F(Rdma, AGidThatIsNotThereIsAnError) {
  auto group = ranks(2, {"barrier"}, {{"NCCL_IB_GID_INDEX", "99"}, {"TUTTI_NET_RECOVERY", "1"}});
  for (const CommandResult& result : group.wait()) test::expectSays(result, "NCCL_IB_GID_INDEX");
}

TEST_F(Rdma, WithoutDevicesTcpIsUsedUnlessForbidden) {
  const Environment none{{"NCCL_IB_HCA", "=nothing"}, {"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_DEBUG", "INFO"}};
  RankGroup by_tcp(2, {"barrier"}, none, {}, kHosts);
  for (const CommandResult& result : by_tcp.wait()) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("by tcp (no RDMA: h0r0:1 is left out by NCCL_IB_HCA"), std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find(
                  "NCCL_IB_HCA=\"=nothing\", which fits no other; name one of these in it, or unset it"),
              std::string::npos)
        << result.err;
    // Who names ports and gets none should not have to look for it.
    EXPECT_NE(result.err.find("WARN rank "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("can use no RDMA port, so TCP carries"), std::string::npos) << result.err;
  }
  RankGroup forbidden(2, {"barrier"}, byRdma({{"NCCL_IB_HCA", "=nothing"}}), {}, kHosts);
  for (const CommandResult& result : forbidden.wait()) test::expectSays(result, "NCCL_NET=IB");
}

TEST_F(Rdma, TooLittleLockedMemoryIsAnErrorWithLimitAndNeed) {
  // A user without privileges, as most are.
  const auto commandOf = [](const std::string& program) {
    return std::vector<std::string>{
        "setpriv", "--reuid=65534",         "--regid=65534", "--clear-groups", "--bounding-set=-all",
        "prlimit", "--memlock=65536:65536", program,         "barrier"};
  };
  sh("chmod 666 /dev/infiniband/uverbs*");
  auto environment = byRdma({{"TUTTI_NET_RECOVERY", "1"}});
  const test::IdFile id;
  sh("chmod 644 " + id.path());
  std::vector<std::unique_ptr<Command>> both;
  for (int rank = 0; rank < 2; ++rank) {
    auto mine = environment;
    mine.insert({{"TUTTI_RANK", std::to_string(rank)},
                 {"TUTTI_WORLD_SIZE", "2"},
                 {"TUTTI_ID_FILE", id.path()},
                 {"NCCL_HOSTID", "host" + std::to_string(rank)},
                 {"NCCL_IB_HCA", "=h" + std::to_string(rank) + "r0"}});
    both.push_back(std::make_unique<Command>(commandOf(std::string(TUTTI_BIN_DIR) + "/rank_program"), mine));
  }
  for (auto& rank : both) {
    const CommandResult result = rank->wait(seconds(60));
    test::expectSays(result, "the limit of locked memory (ulimit -l) is 64 KiB");
  }
}

}  // namespace
}  // namespace tutti
