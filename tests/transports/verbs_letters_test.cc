// What devices report has words for all of it; letters that are forged, stale or garbled change nothing.
#include <gtest/gtest.h>

#include <limits>

#include "tests/transports/verbs_harness.h"

namespace tutti {
namespace {

using test::converse;
using test::Talk;
using test::VerbsCluster;

TEST(VerbsFaults, EveryStatusHasItsNameWordsAndAHint) {
  // The last that rdma-core's header knows; what comes later has its number.
  for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    const std::string text = explain(static_cast<ibv_wc_status>(status));
    EXPECT_NE(text.find("(IBV_WC_"), std::string::npos) << status << ": " << text;
    EXPECT_GT(text.size() - text.find("). "), 10U) << status << ": " << text;
  }
}

TEST(VerbsFaults, HintsNameWhatHelps) {
  const std::string timeout = explain(IBV_WC_RETRY_EXC_ERR);
  for (const char* hint : {"cable", "4791", "firewall", "MTU", "PFC", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"})
    EXPECT_NE(timeout.find(hint), std::string::npos) << hint;
  EXPECT_NE(explain(IBV_WC_REM_ACCESS_ERR).find("rkey"), std::string::npos);
}

TEST(VerbsFaults, EveryEventHasItsNameWordsAndAHint) {
  for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL; ++type) {
    const std::string text = explain(static_cast<ibv_event_type>(type));
    EXPECT_NE(text.find("(IBV_EVENT_"), std::string::npos) << type << ": " << text;
  }
  EXPECT_EQ(effectOf(IBV_EVENT_PORT_ERR), EventEffect::port_lost);
  EXPECT_EQ(effectOf(IBV_EVENT_PORT_ACTIVE), EventEffect::port_back);
  EXPECT_EQ(effectOf(IBV_EVENT_DEVICE_FATAL), EventEffect::device_lost);
  for (const auto type :
       {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_CQ_ERR})
    EXPECT_EQ(effectOf(type), EventEffect::pairs_lost);
  EXPECT_EQ(effectOf(IBV_EVENT_COMM_EST), EventEffect::none);
}

TEST(VerbsFaults, TheCauseIsWhatIsNoFlush) {
  std::optional<ibv_wc_status> cause;
  for (const auto next : {IBV_WC_WR_FLUSH_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_GENERAL_ERR})
    cause = causeOf(cause, next);
  EXPECT_EQ(cause, IBV_WC_RETRY_EXC_ERR);
}

constexpr Talk kTalk{.seed = 1, .messages = 30, .max_bytes = 192};

RdmaOptions options() {
  RdmaOptions options;
  options.slot_count = 4;
  options.slot_bytes = 192;  // 256 with the header
  return options;
}

/// Changes the first letter of a kind; the link must be made nevertheless, by the next attempt.
template <class T>
std::string talkWithChanged(LetterKind kind, const std::function<void(T&)>& change) {
  VerbsCluster cluster(options());
  std::atomic<bool> is_done{false};
  cluster.tamper = [&](int, int, RdmaNetwork::Letter& bytes) {
    LetterHead head;
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (head.kind != kind || is_done.exchange(true)) return true;
    T letter = *readLetter<T>(bytes);
    change(letter);
    bytes = toLetter(letter);
    return true;
  };
  std::string text;
  for (const std::string& error : converse(cluster, kTalk)) text += "error: " + error + "\n";
  return text + cluster.notes();
}

TEST(VerbsLetters, GreetingsThatMakeNoSenseAreRefusedWithTheReason) {
  const std::vector<std::pair<const char*, std::function<void(HelloLetter&)>>> changes{
      {"5 slots of 256 bytes, but 4 of 256 here", [](auto& hello) { hello.slot_count = 5; }},
      {"4 slots of 4294967295 bytes", [](auto& hello) { hello.slot_bytes = ~0U; }},
      {"9 released slots, but 0 here", [](auto& hello) { hello.released = 9; }},
      {"0 queue pairs (1 to 8)", [](auto& hello) { hello.queue_pairs = 0; }},
      {"4000000000 queue pairs", [](auto& hello) { hello.queue_pairs = 4'000'000'000; }},
      {"0 GIDs", [](auto& hello) { hello.gid_count = 0; }},
      {"4000000000 GIDs", [](auto& hello) { hello.gid_count = 4'000'000'000; }},
      {"queue pair number 4294967295", [](auto& hello) { hello.address.numbers[0] = ~0U; }},
      {"packet number 16777216", [](auto& hello) { hello.address.first_packet = 1U << 24; }},
      {"MTU code 77", [](auto& hello) { hello.address.mtu = 77; }},
      {"at address 0xffffffffffffffff", [](auto& hello) { hello.slots_at = ~0ULL; }},
      {"at address 0x0", [](auto& hello) { hello.slots_at = 0; }},
  };
  for (const auto& [what, change] : changes) {
    const std::string text = talkWithChanged<HelloLetter>(LetterKind::hello, change);
    EXPECT_NE(text.find("the greeting is refused: "), std::string::npos) << what << "\n" << text;
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
    EXPECT_EQ(text.find("error: "), std::string::npos) << what << "\n" << text;
  }
}

TEST(VerbsLetters, AnswersThatMakeNoSenseAreRefusedWithTheReason) {
  const std::vector<std::pair<const char*, std::function<void(AnswerLetter&)>>> changes{
      {"1000 slots received, of 0 to ", [](auto& answer) { answer.posted = 1000; }},
      {"a GID that is none of this port: 10.0.0.", [](auto& answer) { answer.senders_gid.bytes[15] = 99; }},
      {"queue pair number 0", [](auto& answer) { answer.address.numbers[0] = 0; }},
      {"MTU code 0", [](auto& answer) { answer.address.mtu = 0; }},
      {"slots of 1024 bytes at address 0xffffffffffffffff", [](auto& answer) { answer.slots_at = ~0ULL; }},
      {"headers of 256 bytes at address 0x0", [](auto& answer) { answer.headers_at = 0; }},
  };
  for (const auto& [what, change] : changes) {
    const std::string text = talkWithChanged<AnswerLetter>(LetterKind::answer, change);
    EXPECT_NE(text.find("its answer is refused: "), std::string::npos) << what << "\n" << text;
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
    EXPECT_EQ(text.find("error: "), std::string::npos) << what << "\n" << text;
  }
}

/// Rank 1 gets a letter as if from `from`, before all others.
std::string talkAfter(int from, const RdmaNetwork::Letter& letter) {
  VerbsCluster cluster(options());
  cluster[1].hear(from, letter);
  std::string text;
  for (const std::string& error : converse(cluster, kTalk)) text += "error: " + error + "\n";
  return text + cluster.notes();
}

TEST(VerbsLetters, WhatIsNoLetterIsRefusedAndChangesNothing) {
  const BrokenLetter broken{.head = {LetterKind::broken, 0, 1, 0}, .text = {}};
  BrokenLetter other_lane = broken, other_way = broken, no_epoch = broken, unknown = broken;
  other_lane.head.lane = 7;
  other_way.head.to_receiver = 1;
  no_epoch.head.epoch = 0;
  unknown.head.kind = static_cast<LetterKind>(77);
  RdmaNetwork::Letter longer = toLetter(broken);
  longer.push_back(1);
  const std::vector<std::tuple<const char*, int, RdmaNetwork::Letter>> letters{
      {"refused: 0 bytes", 0, {}},
      {"refused: 5 bytes", 0, RdmaNetwork::Letter(5)},
      {"bytes instead of ", 0, longer},
      {"refused: lane 7 of 1", 0, toLetter(other_lane)},
      {"refused: the wrong direction", 0, toLetter(other_way)},
      {"refused: no epoch", 0, toLetter(no_epoch)},
      {"refused: kind 77", 0, toLetter(unknown)},
      {"refused: there are no links with that rank", 5, toLetter(broken)},
      {"refused: there are no links with that rank", -1, toLetter(broken)},
      {"refused: there are no links with that rank", 1, toLetter(broken)},
  };
  for (const auto& [what, from, letter] : letters) {
    const std::string text = talkAfter(from, letter);
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
    EXPECT_EQ(text.find("error: "), std::string::npos) << what << "\n" << text;
  }
}

TEST(VerbsLetters, StaleLettersChangeNothing) {
  // Of connections that there are not: an answer, a failure, a good-bye.
  const std::vector<RdmaNetwork::Letter> letters{
      toLetter(AnswerLetter{.head = {LetterKind::answer, 0, 9, 0}}),
      toLetter(BrokenLetter{.head = {LetterKind::broken, 0, 9, 0}, .text = {}}),
      toLetter(ByeLetter{.head = {LetterKind::bye, 0, 9, 1}, .posted = 3}),
  };
  for (const RdmaNetwork::Letter& letter : letters) EXPECT_EQ(talkAfter(0, letter), "");
}

TEST(VerbsLetters, AGreetingThatComesAgainIsNoNewOne) {
  VerbsCluster cluster(options());
  cluster.tamper = [&](int from, int to, RdmaNetwork::Letter& letter) {
    cluster[to].hear(from, letter);  // and once more by the harness
    return true;
  };
  EXPECT_EQ(converse(cluster, kTalk), test::none());
  EXPECT_EQ(cluster.notes(), "");
}

}  // namespace
}  // namespace tutti
