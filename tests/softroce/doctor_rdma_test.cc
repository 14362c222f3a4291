// tutti-doctor on hosts with RDMA: run by tests/softroce/guest, like rdma_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/command.h"

namespace tutti {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using test::Command;
using test::CommandResult;
using test::programFolder;
using test::runCommand;

/// What tells host h that of its devices the first is to be used. Over TCP all of the guest is one host.
std::map<std::string, std::string> host(int h) {
  return {{"NCCL_IB_HCA", "=h" + std::to_string(h) + "r0"}, {"NCCL_SOCKET_IFNAME", "lo"}};
}

json parsed(const CommandResult& result) {
  json document = json::parse(result.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << result.out << result.err;
  return document;
}

std::vector<json> about(const json& document, const std::string& check) {
  std::vector<json> found;
  for (const json& finding : document.value("findings", json::array())) {
    if (finding.at("check") == check) found.push_back(finding);
  }
  EXPECT_FALSE(found.empty()) << check << " is not in " << document;
  return found;
}

void expectSays(const json& finding, const char* part, const std::string& what) {
  EXPECT_NE(finding.at(part).get<std::string>().find(what), std::string::npos) << what << ": " << finding;
}

/// Host 0 listens, host 1 calls it; both end with the same status.
json meet(int expected_status, const std::map<std::string, std::string>& listeners = host(0)) {
  Command listener({"tutti-doctor", "--listen", "4711", "--wait", "60"}, listeners);
  EXPECT_TRUE(listener.waitForOutput("\n\n", seconds(30)));
  const std::string said = listener.output();
  const std::size_t at = said.find("--token ");
  const std::string token = said.substr(at + 8, said.find('\n', at) - at - 8);
  const CommandResult caller =
      runCommand({"tutti-doctor", "--peer", "127.0.0.1:4711", "--token", token, "--json"}, host(1));
  const CommandResult heard = listener.wait(seconds(60));
  EXPECT_EQ(caller.exit_code, expected_status) << caller.out << caller.err;
  EXPECT_EQ(heard.exit_code, expected_status) << heard.out << heard.err;
  return parsed(caller);
}

TEST(RdmaDoctor, NamesPortsAndTheAddressesThatWouldBeChosen) {
  const json document = parsed(runCommand({"tutti-doctor", "--json"}, host(1)));
  EXPECT_EQ(about(document, "port h1r0:1").at(0).at("level"), "ok");
  expectSays(about(document, "port h0r0:1").at(0), "seen", "NCCL_IB_HCA");
  expectSays(about(document, "GID of h1r0:1").at(0), "seen", "10.77.0.2 (RoCE v2");
  expectSays(about(document, "MTU of h1r0:1").at(0), "seen", "4096");
  auto wrong = host(1);
  wrong["NCCL_IB_GID_INDEX"] = "99";
  const json gid = about(parsed(runCommand({"tutti-doctor", "--json"}, wrong)), "devices").at(0);
  EXPECT_EQ(gid.at("level"), "failure");
  expectSays(gid, "seen", "NCCL_IB_GID_INDEX");
}

TEST(RdmaDoctor, LittleLockedMemoryOfAUserIsAFailure) {
  const std::string line =
      "ulimit -l 64; exec setpriv --reuid 65534 --clear-groups --inh-caps=-all \"$0\" --json";
  const CommandResult result = runCommand({"sh", "-c", line, programFolder() + "/tutti-doctor"}, host(0));
  const json finding = about(parsed(result), "locked memory").at(0);
  EXPECT_EQ(finding.at("level"), "failure") << finding;
  expectSays(finding, "seen", "64 KiB");
  EXPECT_EQ(result.exit_code, 2);
}

TEST(RdmaDoctor, PeersWriteBothWays) {
  const json document = meet(0);
  const auto rails = about(document, "h1r0:1 <-> h0r0:1");
  ASSERT_EQ(rails.size(), 2U);
  for (const json& rail : rails) EXPECT_EQ(rail.at("level"), "ok");
  for (const char* way : {"to_listener", "to_caller"}) {
    const json& trial = document.at("measured").at("rdma").at(0).at(way);
    EXPECT_TRUE(trial.at("large_arrived").get<bool>()) << trial;
    EXPECT_GT(trial.at("gbps").get<double>(), 0) << trial;
  }
}

TEST(RdmaDoctor, WhoUsesTcpIsToldApartFromWhoHasNoPort) {
  auto by_tcp = host(0);
  by_tcp["NCCL_NET"] = "Socket";
  const json finding = about(meet(1, by_tcp), "ports").at(0);
  expectSays(finding, "seen", "the listener: NCCL_NET=Socket or NCCL_IB_DISABLE=1");
}

TEST(RdmaDoctor, AFirewallAgainstRoceIsFoundOnTheRightSide) {
  const std::vector<std::string> rule{"INPUT", "-i", "h1r0", "-p", "udp", "--dport", "4791", "-j", "DROP"};
  const auto iptables = [&](const char* action) {
    std::vector<std::string> command{"iptables", "-w", action};
    command.insert(command.end(), rule.begin(), rule.end());
    return runCommand(command);
  };
  const CommandResult blocked = iptables("-A");
  ASSERT_EQ(blocked.exit_code, 0) << blocked.err;
  const json document = meet(2);
  EXPECT_EQ(iptables("-D").exit_code, 0);
  const json finding = about(document, "h1r0:1 <-> h0r0:1").at(0);
  EXPECT_EQ(finding.at("level"), "failure");
  expectSays(finding, "seen", "what h0r0:1 of the listener sends does not arrive at h1r0:1 of the caller");
  expectSays(finding, "todo", "UDP port 4791 (RoCE v2) into h1r0:1");
}

}  // namespace
}  // namespace tutti
