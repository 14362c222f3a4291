// What two doctors make of what they found out between them, which is invented here.
#include <gtest/gtest.h>

#include <string>

#include "tools/doctor/peer/judge_peer.h"
#include "tools/doctor/peer/peer_json.h"
#include "tools/findings/report.h"

namespace tutti::doctor {
namespace {

PeerFacts goodFacts() {
  PeerFacts facts;
  facts.caller = {
      .host = "a", .address = "10.0.0.1", .port = 1, .interface = "eth0", .mtu = 9000, .has_rdma = true};
  facts.listener = {
      .host = "b", .address = "10.0.0.2", .port = 2, .interface = "eth0", .mtu = 9000, .has_rdma = true};
  facts.to_listener = {.outcome = TcpOutcome::ok, .left_by = "10.0.0.1", .round_trip_us = 20, .gbps = 10};
  facts.to_caller = {.outcome = TcpOutcome::ok, .left_by = "10.0.0.2", .round_trip_us = 20, .gbps = 10};
  facts.to_listener.segments = facts.to_caller.segments = 10'000;
  RdmaTrial trial;
  trial.small_arrived = trial.small_acknowledged = trial.large_arrived = trial.large_acknowledged = true;
  facts.rails = {{"m0:1", "n0:1", "g and h", trial, trial}};
  return facts;
}

/// The findings of at least this level; text of all of them together.
std::string badOnes(const PeerFacts& facts, Level level = Level::warning) {
  std::string text;
  for (const Finding& finding : judgePeers(facts)) {
    if (finding.level < level) continue;
    text += finding.check + ": " + finding.seen + " > " + finding.todo + "\n";
    EXPECT_FALSE(finding.todo.empty()) << finding.seen;
  }
  return text;
}

void expectSays(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << "\"" << what << "\" is not in: " << text;
}

TEST(JudgePeers, NothingIsWrongWithGoodOnes) { EXPECT_EQ(badOnes(goodFacts(), Level::note), ""); }

TEST(JudgePeers, WhatFailsOneWayOnlyIsTheFaultOfOneSide) {
  PeerFacts facts = goodFacts();
  facts.to_caller.outcome = TcpOutcome::no_answer;
  expectSays(badOnes(facts),
             "b -> a: no answer from port 1: filtered; the other way it works, so the fault is in "
             "what a (10.0.0.1) lets in");
  facts.to_listener.outcome = TcpOutcome::no_answer;
  EXPECT_EQ(badOnes(facts).find("the other way"), std::string::npos) << badOnes(facts);
}

TEST(JudgePeers, EveryOutcomeOfTcpHasItsRemedy) {
  for (const auto& [outcome, says] :
       {std::pair(TcpOutcome::no_route, "add a route"), std::pair(TcpOutcome::no_route, "firewalld"),
        std::pair(TcpOutcome::cut, "then the connection broke off"),
        std::pair(TcpOutcome::refused, "rejects them"), std::pair(TcpOutcome::stranger, "NAT"),
        std::pair(TcpOutcome::stalls, "same MTU"), std::pair(TcpOutcome::failed, "ip route get 10.0.0.2"),
        std::pair(TcpOutcome::untried, "not tried")}) {
    PeerFacts facts = goodFacts();
    facts.to_listener.outcome = outcome;
    expectSays(badOnes(facts), says);
    EXPECT_EQ(badOnes(facts).find("b -> a"), std::string::npos);
  }
}

TEST(JudgePeers, LossesWrongRoutesAndDifferencesAreNoted) {
  PeerFacts facts = goodFacts();
  facts.to_listener.sent_again = 200;  // of 10,000
  facts.to_caller.left_by = "192.168.7.2";
  expectSays(badOnes(facts), "200 of 10000 segments had to be sent again");
  expectSays(badOnes(facts), "leaves b by 192.168.7.2, not by 10.0.0.2");
  facts.to_listener.sent_again = 60;
  EXPECT_EQ(badOnes(facts).find("sent again"), std::string::npos);
  facts.caller.mtu = 1500;
  facts.to_listener.gbps = 1;
  expectSays(badOnes(facts, Level::note), "MTU 1500 at a (10.0.0.1), 9000 at b (10.0.0.2)");
  expectSays(badOnes(facts, Level::note), "what a (10.0.0.1) sends is 10.0 times slower");
}

TEST(JudgePeers, ARailIsJudgedByWhatArrivedAndWhatWasAcknowledged) {
  PeerFacts facts = goodFacts();
  RdmaRail& rail = facts.rails[0];
  // Nothing gets into the listener: the caller's writes are lost, and acknowledgements for the listener.
  rail.to_listener = {.status = "no acknowledgement"};
  rail.to_caller = {.small_arrived = true, .status = "no acknowledgement"};
  expectSays(badOnes(facts), "what m0:1 of a (10.0.0.1) sends does not arrive at n0:1 of b (10.0.0.2)");
  expectSays(badOnes(facts), "UDP port 4791 (RoCE v2) into n0:1 of b");
  std::swap(rail.to_listener, rail.to_caller);
  expectSays(badOnes(facts), "UDP port 4791 (RoCE v2) into m0:1 of a");
  rail.to_listener.small_arrived = false;
  expectSays(badOnes(facts), "no data arrives on either side");
  rail = goodFacts().rails[0];
  rail.to_caller.large_acknowledged = rail.to_caller.large_arrived = false;
  expectSays(badOnes(facts), "b -> a: 8 bytes pass, 256 KiB do not");
  rail.to_caller.problem = "m0:1: the limit of locked memory is 64 KiB";
  expectSays(badOnes(facts), "locked memory is 64 KiB");
  rail.listener.clear();
  expectSays(badOnes(facts, Level::failure), "no port of b (10.0.0.2) has an address");
  facts.rails.push_back(goodFacts().rails[0]);
  EXPECT_EQ(badOnes(facts, Level::failure), "");
  expectSays(badOnes(facts), "no port of b (10.0.0.2) has an address");
}

TEST(JudgePeers, RdmaOnOneSideOnlyIsAWarning) {
  PeerFacts facts = goodFacts();
  facts.rails.clear();
  facts.listener.has_rdma = false;
  facts.listener.why_no_rdma = "no device";
  expectSays(badOnes(facts), "b (10.0.0.2): no device");
  facts.caller.has_rdma = false;
  EXPECT_EQ(badOnes(facts), "");
}

TEST(JudgePeers, TwoDoctorsOfOneHostAreToldApart) {
  PeerFacts facts = goodFacts();
  facts.listener.host = facts.caller.host;
  facts.to_caller.outcome = TcpOutcome::refused;
  expectSays(badOnes(facts), "10.0.0.2 -> 10.0.0.1: port 1 is refused");
  facts.listener.address = facts.caller.address;
  expectSays(badOnes(facts), "listener -> caller: port 1 is refused");
}

TEST(JudgePeers, ABrokenConversationIsAFailure) {
  PeerFacts facts = goodFacts();
  facts.ended = "the other doctor was silent for 20 s";
  expectSays(badOnes(facts, Level::failure), "silent for 20 s");
  // Where everything falls silent, large frames are not to blame.
  facts.to_listener.outcome = TcpOutcome::stalls;
  EXPECT_EQ(badOnes(facts).find("MTU"), std::string::npos) << badOnes(facts);
  expectSays(badOnes(facts), "whether the link stays up");
}

TEST(JudgePeers, LoopbackIsNoAddressForOthers) {
  PeerFacts facts = goodFacts();
  facts.listener.address = "127.0.0.1";
  facts.to_listener.outcome = TcpOutcome::refused;
  expectSays(badOnes(facts), "on b (127.0.0.1): name the interface that leads to a (10.0.0.1)");
  EXPECT_EQ(badOnes(facts).find("packet filter"), std::string::npos) << badOnes(facts);
}

TEST(PeerJson, WhatWasSaidIsWhatIsHeard) {
  TcpTrial tcp = goodFacts().to_caller;
  tcp.outcome = TcpOutcome::stalls;
  tcp.words = "w";
  tcp.sent_again = 7;
  EXPECT_EQ(toJson(tcpTrialFrom(toJson(tcp))), toJson(tcp));
  EXPECT_EQ(tcpTrialFrom(toJson(tcp)).outcome, TcpOutcome::stalls);
  RdmaTrial rdma;
  rdma.small_arrived = true;
  rdma.status = "s";
  rdma.gbps = 3;
  EXPECT_EQ(toJson(rdmaTrialFrom(toJson(rdma))), toJson(rdma));
  EXPECT_EQ(toJson(sideFrom(toJson(goodFacts().caller))), toJson(goodFacts().caller));
}

TEST(PeerJson, WhatMakesNoSenseIsRefusedAndTextsAreTamed) {
  EXPECT_THROW(tcpTrialFrom({{"outcome", 7}}), std::exception);
  EXPECT_THROW(sideFrom(nlohmann::ordered_json::array()), std::exception);
  EXPECT_EQ(textFrom("a\x1b[2Jb"), "a [2Jb");
  EXPECT_LE(textFrom(std::string(100'000, 'x')).size(), 1000U);
}

}  // namespace
}  // namespace tutti::doctor
