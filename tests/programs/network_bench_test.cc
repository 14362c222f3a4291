// bench/network: what it makes of a link, how it starts ranks, what it reports; with all_reduce_perf, and
// with a stand-in for it that sends as much as it should, or nothing. How fast anything is, no test says.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/namespaces.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

using nlohmann::json;

// Sends the bytes of its iterations to the other, if it is to, and reports a time of 1 s for each.
constexpr const char* kStandIn = R"(#!/usr/bin/env python3
import json, os, socket, stat, sys
rank, address = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
secret = os.stat(os.environ["TUTTI_SECRET_FILE"])
assert os.environ["WORLD_SIZE"] == "2" and os.environ["NCCL_HOSTID"] == f"namespace{rank}"
assert secret.st_size == 32 and stat.S_IMODE(secret.st_mode) == 0o600
assert "TUTTI_RANK" not in os.environ
if rank == 0:
    peer = socket.create_server(address).accept()[0]
else:
    while True:
        try:
            peer = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            pass
size, iterations = (int(sys.argv[sys.argv.index(flag) + 1]) for flag in ("-b", "-n"))
data = bytes(2 * size * iterations if os.environ.get("STAND_IN") != "lazy" else 1)
if os.environ.get("STAND_IN") == "failing" and rank == 1:
    sys.exit("rank 1 has no luck")
if rank == 0:
    peer.sendall(data)
    peer.recv(1)
    half = {"time": 1e6, "alg_bw": 0.125, "bus_bw": 0.125, "nwrong": 0}
    with open(sys.argv[sys.argv.index("-J") + 1], "w") as file:
        json.dump({"results": [{"size": size, "out_of_place": half, "in_place": half}]}, file)
else:
    got = 0
    while got < len(data):
        got += len(peer.recv(1 << 20))
    peer.send(b"x")
)";

class NetworkBench : public NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    if (IsSkipped()) return;
    if (runCommand({"python3", "--version"}).exit_code != 0) GTEST_SKIP() << "no python3";
    folder_.addProgram("all_reduce_perf", kStandIn);
  }

  std::vector<std::string> command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {TUTTI_NETWORK, "--bin", folder_.path(), "--seconds", "0.2"});
    return arguments;
  }

  /// Of this script, and of a run whose process is `pid`.
  static bool left(int pid) {
    const auto stem = "tutti-net-" + std::to_string(pid) + "-";
    return std::filesystem::exists("/run/netns/" + stem + "0") ||
           std::filesystem::exists("/run/netns/" + stem + "1");
  }

  ScratchDirectory folder_;
};

TEST_F(NetworkBench, ReportsPayloadAgainstTheRate) {
  const std::string report = folder_.path() + "/report.json";
  Command run(command({"--rate", "200mbit", "--sizes", "64K,1M", "--iterations", "2", "--json", report}),
              {{"TUTTI_RANK", "5"}, {"RANK", "7"}});
  const int pid = run.pid();
  const CommandResult result = run.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("| 64 KiB out of place | 1000000.0 | 1 Gbit/s | 500.0 % |"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("| 1 MiB in place |"), std::string::npos) << result.out;
  const json found = json::parse(std::ifstream(report));
  EXPECT_EQ(found["rate_bits_per_s"], 200000000);
  ASSERT_EQ(found["results"].size(), 2U);
  EXPECT_GE(found["results"][1]["sent_bytes"], 4 << 20);
  for (const double bits : found["plain_tcp_bits_per_s"]) {
    EXPECT_GT(bits, 0);
    EXPECT_LT(bits, 260e6);  // the bucket is full at first
  }
  EXPECT_FALSE(left(pid));
}

/// As on a machine so busy that the time is over when the first of the data is to be sent.
TEST_F(NetworkBench, PlainTcpHasARateHoweverLateItBegins) {
  const std::string report = folder_.path() + "/report.json";
  const CommandResult result =
      runCommand(command({"--seconds", "0", "--sizes", "64K", "--iterations", "1", "--json", report}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(std::ifstream(report));
  ASSERT_EQ(document.at("plain_tcp_bits_per_s").size(), 2U);
  for (const double bits : document.at("plain_tcp_bits_per_s")) EXPECT_GT(bits, 0);
}

TEST_F(NetworkBench, TheRealProgramUsesALinkThatLosesPackets) {
  const CommandResult result =
      runCommand({TUTTI_NETWORK, "--bin", TUTTI_BIN_DIR, "--seconds", "0.2", "--rate", "500mbit", "--loss",
                  "0.001", "--sizes", "64K,1M", "--iterations", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("| 1 MiB in place |"), std::string::npos) << result.out;
}

TEST_F(NetworkBench, SeesThatTheNetworkWasNotUsed) {
  const CommandResult result = runCommand(command({"--sizes", "1M", "--env", "STAND_IN=lazy"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("1 MiB: did not use the network"), std::string::npos) << result.err;
}

TEST_F(NetworkBench, TellsWhichRankFailedAndItsWords) {
  Command run(command({"--env", "STAND_IN=failing", "--limit", "20"}));
  const int pid = run.pid();
  const CommandResult result = run.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("the one in namespace 1 ended with status 1"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("1: rank 1 has no luck"), std::string::npos) << result.err;
  EXPECT_FALSE(left(pid));
}

TEST_F(NetworkBench, CleansUpWhenItIsStopped) {
  Command run(command({"--seconds", "50"}));
  const int pid = run.pid();
  for (int look = 0; look < 1000 && !left(pid); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(left(pid));
  run.kill(SIGTERM);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGTERM);
  EXPECT_FALSE(left(pid));
}

TEST_F(NetworkBench, RefusesBadUsage) {
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{
           {"--rate", "fast"}, {"--rate", "0gbit"}, {"--loss", "1"}, {"--sizes", "0"}, {"--env", "NAME"}}) {
    EXPECT_EQ(runCommand(command(bad)).exit_code, 2) << testing::PrintToString(bad);
  }
  const CommandResult no_build = runCommand({TUTTI_NETWORK, "--bin", "/nonexistent"});
  EXPECT_EQ(no_build.exit_code, 2);
  EXPECT_NE(no_build.err.find("no /nonexistent/all_reduce_perf"), std::string::npos) << no_build.err;
}

TEST(NetworkBenchDryRun, ShowsCommandsAndChangesNothing) {
  if (runCommand({"python3", "--version"}).exit_code != 0) GTEST_SKIP() << "no python3";
  const CommandResult result = runCommand({TUTTI_NETWORK, "--dry-run", "--rate", "1gbit", "--loss", "0.01"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"ip netns add", "tbf rate 1000000000bit", "--probability 0.010000000",
                           "MASTER_ADDR=", "all_reduce_perf -b 1048576", "ip netns del"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
}

}  // namespace
}  // namespace tutti::test
