// Two doctors in two network namespaces, and what stands between them.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/namespaces.h"
#include "transports/socket_address.h"

namespace tutti::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

using DoctorPeers = NamespaceTest;

/// The line for the other host.
std::string announced(const std::string& text) {
  const std::size_t at = text.find("tutti-doctor --peer ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

/// Without line breaks and indents.
std::string flat(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::string result;
  for (const std::string& word : words(text)) {
    if (!word.empty()) result += word + " ";
  }
  return result;
}

/// The doctor of namespace 0 listens, the one of namespace 1 calls it by the line that was printed, and both
/// come to the same verdict. What the caller says in JSON.
json meet(const Namespaces& hosts, int expected_status, const Namespaces::Environment& listeners = {},
          const Namespaces::Environment& callers = {}) {
  const auto listener = hosts.start(0, {"tutti-doctor", "--listen", "4711", "--wait", "30"}, listeners);
  EXPECT_TRUE(listener->waitForOutput("\n\n", seconds(60)));
  std::vector<std::string> call = words(announced(listener->output()));
  call.emplace_back("--json");
  const CommandResult caller = hosts.run(1, call, callers);
  const CommandResult heard = listener->wait(seconds(60));
  EXPECT_EQ(caller.exit_code, expected_status) << caller.out << caller.err;
  EXPECT_EQ(heard.exit_code, expected_status) << heard.out << heard.err;
  json document = json::parse(caller.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << caller.out << caller.err;
  const std::string text = flat(heard.out);
  for (const json& finding : document.value("findings", json::array())) {
    for (const char* part : {"check", "seen", "todo"})
      EXPECT_NE(text.find(flat(finding.at(part))), std::string::npos) << finding << heard.out;
  }
  return document;
}

/// The finding about one direction of TCP; of a level, where there are several.
json direction(const json& document, const std::string& from, const std::string& to,
               const std::string& level = "") {
  const std::string check = from + " -> " + to;
  for (const json& finding : document.value("findings", json::array())) {
    if (finding.at("check") == check && (level.empty() || finding.at("level") == level)) return finding;
  }
  ADD_FAILURE() << check << " is not in " << document;
  return {{"level", ""}, {"seen", ""}, {"todo", ""}};
}

/// The same from one namespace to another.
json direction(const json& document, int from, int to) {
  return direction(document, Namespaces::address(from), Namespaces::address(to));
}

void expectSays(const json& finding, const char* part, const std::string& what) {
  EXPECT_NE(finding.at(part).get<std::string>().find(what), std::string::npos) << what << ": " << finding;
}

TEST_F(DoctorPeers, AGoodNetworkIsMeasuredbothWays) {
  const Namespaces hosts(2);
  const json document = meet(hosts, 0);
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)})
    EXPECT_EQ(direction(document, from, to).at("level"), "ok");
  for (const char* way : {"to_listener", "to_caller"}) {
    const json& trial = document.at("measured").at("tcp").at(way);
    EXPECT_EQ(trial.at("outcome"), "ok");
    EXPECT_GT(trial.at("gbps").get<double>(), 0);
    EXPECT_GT(trial.at("round_trip_us").get<double>(), 0);
  }
}

TEST_F(DoctorPeers, AFirewallOnOneSideIsFoundThere) {
  for (const auto& [target, seen] : {std::pair("DROP", "no answer"), std::pair("REJECT", "refused")}) {
    Namespaces hosts(2);
    hosts.setOpenPorts(1, {}, target);  // the caller lets nobody in
    const json document = meet(hosts, 2);
    EXPECT_EQ(direction(document, 1, 0).at("level"), "ok");
    const json finding = direction(document, 0, 1);
    EXPECT_EQ(finding.at("level"), "failure");
    expectSays(finding, "seen", seen);
    expectSays(finding, "seen", "the other way it works");
    expectSays(finding, "todo", Namespaces::address(1));
  }
}

TEST_F(DoctorPeers, OpenPortsAreThoseOfTheRange) {
  Namespaces hosts(2);
  hosts.setOpenPorts(0, {{4711, 4711}, {20000, 20010}}, "DROP");
  expectSays(direction(meet(hosts, 2), 1, 0), "seen", "no answer");
  meet(hosts, 0, {{"TUTTI_PORT_RANGE", "20000-20010"}});
}

TEST_F(DoctorPeers, LargeFramesThatVanishAreToldFromAFirewall) {
  const Namespaces hosts(2);
  const CommandResult rule = hosts.run(0, {"iptables", "-w", "-I", "INPUT", "-p", "tcp", "-m", "length",
                                           "--length", "1400:65535", "-j", "DROP"});
  ASSERT_EQ(rule.exit_code, 0) << rule.err;
  const json document = meet(hosts, 2);
  EXPECT_EQ(direction(document, 0, 1).at("level"), "ok");
  expectSays(direction(document, 1, 0), "seen", "large frames are lost");
  expectSays(direction(document, 1, 0), "todo", "MTU");
}

TEST_F(DoctorPeers, AnInterfaceThatLeadsElsewhereIsNamed) {
  Namespaces hosts(2);
  hosts.addInterface(1, "dead0", "10.99.0.1/24");
  const json document = meet(hosts, 2, {}, {{"NCCL_SOCKET_IFNAME", "=dead0"}});
  const json there = direction(document, "10.99.0.1", Namespaces::address(0), "warning");
  expectSays(there, "seen", "leaves 10.99.0.1 by " + Namespaces::address(1));
  expectSays(there, "todo", "NCCL_SOCKET_IFNAME");
  const json back = direction(document, Namespaces::address(0), "10.99.0.1", "failure");
  expectSays(back, "seen", "has no way there");
  expectSays(back, "todo", "ip route get 10.99.0.1");
}

constexpr const char* kWrongToken = "62b246136d47bf2e0a77feaf";

/// Calls a listener with the wrong token, while it waits. What the caller and then the listener said.
std::pair<CommandResult, CommandResult> callByTheWrongToken(
    const Namespaces& hosts, const std::function<CommandResult(const std::string& token)>& call) {
  for (const char* const wait : {"3", "15", "60"}) {
    const auto listener = hosts.start(0, {"sh", "-c", "exec \"$0\" --listen 4711 --wait $1 --json 2>&1",
                                          programFolder() + "/tutti-doctor", wait});
    EXPECT_TRUE(listener->waitForOutput("--token", seconds(60)));
    const CommandResult called = call(kWrongToken);
    const bool came_too_late = called.out.find("nobody listens") != std::string::npos;
    CommandResult heard = listener->wait(seconds(90));
    if (!came_too_late) return {called, heard};
  }
  ADD_FAILURE() << "the caller took a minute";
  return {};
}

TEST_F(DoctorPeers, WhoDoesNotGetThroughIsToldWhy) {
  Namespaces hosts(2);
  const auto call = [&](const std::string& token) {
    return hosts.run(
        1, {"tutti-doctor", "--peer", Namespaces::address(0) + ":4711", "--token", token, "--json"});
  };
  const auto says = [](const CommandResult& result, const char* what) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.out.find(what), std::string::npos) << result.out << result.err;
  };
  says(call(kWrongToken), "nobody listens");
  const auto [called, heard] = callByTheWrongToken(hosts, call);
  says(called, "does not know the token");
  const json document =
      json::parse(heard.out.substr(std::min(heard.out.find('{'), heard.out.size())), nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << heard.out;
  EXPECT_EQ(document.at("exit_status"), 2);
  expectSays(document.at("findings").at(0), "seen", "1 connection(s) did not know the token");
  hosts.setOpenPorts(0, {}, "DROP");
  says(call(kWrongToken), "no answer");
  says(hosts.run(1, {"tutti-doctor", "--peer", "10.200.0.1", "--token", kWrongToken, "--json"}),
       "no way to it");
}

NetAddress listenerAddress() {
  NetAddress address = *parseNumericHost(Namespaces::address(0));
  address.port = 4711;
  return address;
}

TEST_F(DoctorPeers, TheListenersPortIsKnownBeforehand) {
  const Namespaces hosts(1);
  const CommandResult result = hosts.run(0, {"tutti-doctor", "--listen", "--wait", "1"});
  EXPECT_NE(announced(result.out).find(Namespaces::address(0) + ":29400 "), std::string::npos) << result.out;
}

TEST_F(DoctorPeers, ADoctorThatIsEndedIsNotAFaultOfTheFrames) {
  const Namespaces hosts(2);
  const auto listener = hosts.start(0, {"tutti-doctor", "--listen", "4711", "--wait", "30"});
  ASSERT_TRUE(listener->waitForOutput("\n\n", seconds(60)));
  // What a peer that is gone sends: a reset, here in answer to the first large frame.
  const CommandResult rule =
      hosts.run(0, {"iptables", "-w", "-I", "INPUT", "-p", "tcp", "-m", "length", "--length", "1400:65535",
                    "-j", "REJECT", "--reject-with", "tcp-reset"});
  ASSERT_EQ(rule.exit_code, 0) << rule.err;
  const CommandResult caller = hosts.run(1, words(announced(listener->output())));
  EXPECT_NE(flat(caller.out).find("then the connection broke off"), std::string::npos) << caller.out;
  EXPECT_EQ(caller.out.find("MTU"), std::string::npos) << caller.out;
}

TEST_F(DoctorPeers, ASilentStrangerHoldsUpNobodyForLong) {
  const Namespaces hosts(2);
  const auto listener = hosts.start(0, {"tutti-doctor", "--listen", "4711", "--wait", "60"});
  ASSERT_TRUE(listener->waitForOutput("\n\n", seconds(60)));
  const UniqueFd stranger = hosts.openSocket(1, AF_INET, SOCK_STREAM);
  const auto to = toSocketAddress(listenerAddress());
  ASSERT_EQ(::connect(stranger.get(), to.get(), to.length), 0);
  const CommandResult caller = hosts.run(1, words(announced(listener->output())));
  EXPECT_EQ(caller.exit_code, 0) << caller.out << caller.err;
  EXPECT_EQ(listener->wait(seconds(60)).exit_code, 0);
}

}  // namespace
}  // namespace tutti::test
