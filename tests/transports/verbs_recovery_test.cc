// RDMA links whose devices, ports and packets fail: what was posted arrives once, whole and in order, or the
// error says where to look. Each message of a conversation is checked, so none can be lost or come twice.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/transports/verbs_harness.h"

namespace tutti {
namespace {

using test::converse;
using test::Fabric;
using test::milliseconds;
using test::Talk;
using test::VerbsCluster;

constexpr Talk kTalk{.seed = 1, .messages = 40, .max_bytes = 512};

RdmaOptions optionsWith(std::uint32_t slot_count, std::uint32_t queue_pairs = 1) {
  RdmaOptions options;
  options.slot_count = slot_count;
  options.slot_bytes = 512;
  options.settings.queue_pairs = queue_pairs;
  return options;
}

/// Talks while `action` befalls the links after so many writes.
struct Outcome {
  std::vector<std::string> errors;
  std::string notes;
};
Outcome talkThrough(std::uint64_t writes, const std::function<void()>& action,
                    const RdmaOptions& options = optionsWith(4), int ports = 1, const Talk& talk = kTalk) {
  VerbsCluster cluster(options, 2, ports);
  Fabric::the().breakAt(writes, action);
  Outcome outcome{.errors = converse(cluster, talk), .notes = cluster.notes()};
  for (const std::string& text : Fabric::the().violations()) outcome.errors.push_back(text);
  return outcome;
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// Lets both ranks do what they can, until it holds or patience is over.
bool becomes(const VerbsCluster& cluster, const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
  while (!holds() && std::chrono::steady_clock::now() < deadline) {
    for (const int rank : {0, 1}) cluster[rank].visit();
    std::this_thread::sleep_for(milliseconds(1));
  }
  return holds();
}

TEST(VerbsExchange, EveryKindOfSlotOnAnyNumberOfQueuePairs) {
  for (const std::uint32_t slot_count : {2U, 3U, 4U, 8U}) {
    for (const std::uint32_t queue_pairs : {1U, 2U, 3U}) {
      SCOPED_TRACE(std::to_string(slot_count) + " slots on " + std::to_string(queue_pairs));
      const Talk talk{.seed = slot_count, .messages = 1000, .max_bytes = 512};
      EXPECT_EQ(talkThrough(~0ULL, {}, optionsWith(slot_count, queue_pairs), 1, talk).errors, test::none());
    }
  }
}

TEST(VerbsExchange, SlotsThatAreOneWriteAndThoseThatAreTwo) {
  RdmaOptions options = optionsWith(3, 2);
  options.slot_bytes = 3 * kTogetherBytes;
  const Talk talk{.seed = 5, .messages = 60, .max_bytes = options.slot_bytes};
  EXPECT_EQ(talkThrough(~0ULL, {}, options, 1, talk).errors, test::none());
  const auto broken = talkThrough(
      50, [] { Fabric::the().failPairs("r0p0", IBV_WC_RETRY_EXC_ERR); }, options, 1, talk);
  EXPECT_EQ(broken.errors, test::none()) << broken.notes;
}

/// Two ranks whose link from 0 to 1 is connected.
class VerbsLink : public testing::Test {
 protected:
  VerbsLink() {
    send(1);
    EXPECT_TRUE(becomes(cluster_, [&] { return test::postedOn(in_) == 1; }));
    release(1);
    EXPECT_TRUE(becomes(cluster_, [&] { return test::releasedOn(out_) == 1; }));
    before_ = all();
  }
  ~VerbsLink() override { EXPECT_EQ(Fabric::the().violations(), test::none()); }

  void send(int slots, std::uint32_t bytes = 8) {
    cluster_[0].enter();
    for (int i = 0; i < slots; ++i) test::publish(out_, {.bytes = bytes});
    cluster_[0].push(1);
    cluster_[0].leave();
  }
  void release(int slots) {
    for (int i = 0; i < slots; ++i) test::releaseOne(in_);
    cluster_[1].push(0);
  }
  /// Since the link is connected.
  int writes() const { return all() - before_; }
  static int all() { return Fabric::the()["r0p0"].writes + Fabric::the()["r1p0"].writes; }

  VerbsCluster cluster_{optionsWith(4)};
  LinkView out_ = cluster_[0].outbound(0, 1);
  LinkView in_ = cluster_[1].inbound(0, 0);
  int before_ = 0;
};

TEST_F(VerbsLink, HeaderAndDataOfASmallSlotAreOneWrite) {
  for (const std::uint32_t bytes : {0U, 1U, 64U, 65U, 512U}) {
    const auto before = writes();
    send(1, bytes);
    EXPECT_EQ(writes() - before, 1) << bytes << " bytes";
    ASSERT_TRUE(becomes(cluster_, [&] { return test::postedOn(in_) > test::releasedOn(in_); }));
    EXPECT_EQ(in_.header(test::releasedOn(in_)).bytes, bytes);
    release(1);
    ASSERT_TRUE(becomes(cluster_, [&] { return test::releasedOn(out_) == test::postedOn(out_); }));
  }
}

TEST_F(VerbsLink, CreditsThatNobodyWaitsForAreSentWhileTheirRankWaits) {
  send(2);
  cluster_[1].enter();
  cluster_[1].poll(0);
  ASSERT_EQ(test::postedOn(in_), 3U);
  release(2);
  EXPECT_EQ(writes(), 2) << "half a ring is owed: the sender has room";
  cluster_[1].poll(0);
  EXPECT_EQ(writes(), 3) << "one credit for both";
  cluster_[1].leave();
}

TEST_F(VerbsLink, CreditsOfWhichTheSenderWillBeShortAreSentAtOnce) {
  send(3);
  cluster_[1].enter();
  cluster_[1].poll(0);
  ASSERT_EQ(test::postedOn(in_), 4U);
  release(3);
  EXPECT_EQ(writes(), 4);
  cluster_[1].leave();
}

TEST(VerbsRecovery, AConnectionMayBreakAtAnyMoment) {
  for (const std::uint32_t queue_pairs : {1U, 3U}) {
    for (std::uint64_t at = 1; at < 120; at += at < 40 ? 1 : 7) {
      SCOPED_TRACE("write " + std::to_string(at) + " on " + std::to_string(queue_pairs));
      const auto outcome = talkThrough(
          at, [] { Fabric::the().failPairs("r1p0", IBV_WC_RETRY_EXC_ERR); }, optionsWith(3, queue_pairs));
      EXPECT_EQ(outcome.errors, test::none()) << outcome.notes;
    }
  }
}

TEST(VerbsRecovery, AnyStatusIsHealedAndToldInWords) {
  for (const auto status : {IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR,
                            IBV_WC_RETRY_EXC_ERR, IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR}) {
    const auto outcome = talkThrough(30, [&] { Fabric::the().failPairs("r0p0", status); });
    EXPECT_EQ(outcome.errors, test::none());
    // Though the first completions say no more than that it failed before.
    EXPECT_TRUE(says(outcome.notes, explain(status))) << outcome.notes;
    for (const char* part :
         {"RDMA to rank ", "r0p0:1", "10.0.0.1 (RoCE v2, index 1)", "nothing is lost or delivered twice"})
      EXPECT_TRUE(says(outcome.notes, part)) << outcome.notes;
  }
}

TEST(VerbsRecovery, OneLostWriteIsNoticedOnWhicheverQueuePair) {
  for (const std::uint64_t at : {30, 31, 32}) {
    Fabric& fabric = Fabric::the();
    VerbsCluster cluster(optionsWith(4, 2));
    fabric.breakAt(at, [&] { fabric.loseNext("r0p0"); });
    EXPECT_EQ(converse(cluster, kTalk), test::none());
    EXPECT_TRUE(says(cluster.notes(), "no acknowledgement for 2000 ms")) << cluster.notes();
  }
}

TEST(VerbsRecovery, OfSlotsThatAreSentTogetherEachQueuePairsLastIsAcknowledged) {
  VerbsCluster cluster(optionsWith(4, 2));
  Fabric::the().breakAt(1, [] { Fabric::the().loseNext("r0p0"); });
  cluster[0].enter();
  for (int slot = 0; slot < 2; ++slot) test::publish(cluster[0].outbound(0, 1), {.bytes = 8});
  cluster[0].push(1);
  cluster[0].leave();
  // Nothing more is sent, by which the silence of the first pair could be noticed.
  EXPECT_TRUE(becomes(cluster, [&] { return test::postedOn(cluster[1].inbound(0, 0)) == 2; }));
}

TEST(VerbsRecovery, WhatCameBeforeAConnectionWasGivenUpCountsForTheSenderMayHaveLeft) {
  VerbsCluster cluster(optionsWith(4));
  const LinkView out = cluster[0].outbound(0, 1);
  const LinkView in = cluster[1].inbound(0, 0);
  const auto send = [&] {
    cluster[0].enter();
    test::publish(out, {.bytes = 8});
    cluster[0].push(1);
    cluster[0].poll(1);
    cluster[0].leave();
  };
  send();
  ASSERT_TRUE(becomes(cluster, [&] { return test::postedOn(in) == 1; }));
  send();
  // Rank 1 did not look yet. What it says of its port crosses the good-bye.
  cluster.tamper = [](int from, int, RdmaNetwork::Letter&) { return from != 1; };
  Fabric::the().setPort("r1p0", false);
  cluster[1].visit();
  EXPECT_TRUE(cluster[0].drain(std::chrono::steady_clock::now() + milliseconds(1000)));
  EXPECT_TRUE(becomes(cluster, [&] { return test::postedOn(in) == 2; }));
  EXPECT_EQ(cluster.failed(), test::none());
}

TEST(VerbsRecovery, WhatArrivedWithoutAcknowledgementIsNotDeliveredTwice) {
  Fabric& fabric = Fabric::the();
  VerbsCluster cluster(optionsWith(4));
  std::atomic<int> greetings{0};
  cluster.tamper = [&](int, int, RdmaNetwork::Letter& letter) {
    LetterHead head;
    std::memcpy(&head, letter.data(), sizeof(head));
    // The third is that of the connection in place of the silent one.
    if (head.kind == LetterKind::hello && ++greetings == 3) fabric.setUnacknowledged("r0p0", false);
    return true;
  };
  fabric.breakAt(30, [&] { fabric.setUnacknowledged("r0p0", true); });
  EXPECT_EQ(converse(cluster, kTalk), test::none());
  EXPECT_GE(greetings.load(), 3);
}

TEST(VerbsRecovery, AnotherPortTakesOver) {
  const auto outcome = talkThrough(
      30, [] { Fabric::the().setPort("r1p0", false); }, optionsWith(4), 2);
  EXPECT_EQ(outcome.errors, test::none());
  EXPECT_TRUE(says(outcome.notes, "RDMA r1p0:1: the port went down (IBV_EVENT_PORT_ERR)")) << outcome.notes;
  EXPECT_TRUE(says(outcome.notes, "goes on from r0p1:1 10.0.1.1")) << outcome.notes;
}

TEST(VerbsRecovery, APortThatComesBackGoesOn) {
  std::jthread later;
  const auto outcome = talkThrough(30, [&later] {
    Fabric::the().setPort("r1p0", false);
    later = std::jthread([] {
      std::this_thread::sleep_for(milliseconds(200));
      Fabric::the().setPort("r1p0", true);
    });
  });
  EXPECT_EQ(outcome.errors, test::none());
  EXPECT_TRUE(says(outcome.notes, "RDMA r1p0:1: the port is up")) << outcome.notes;
}

TEST(VerbsRecovery, AQueuePairsOwnEventIsEnough) {
  const auto outcome =
      talkThrough(30, [] { Fabric::the().failPairs("r0p0", IBV_WC_FATAL_ERR, /*with_event=*/true); });
  EXPECT_EQ(outcome.errors, test::none());
  EXPECT_TRUE(says(outcome.notes, "a queue pair failed (IBV_EVENT_QP_FATAL)")) << outcome.notes;
}

TEST(VerbsRecovery, AnotherDeviceTakesOverFromOneThatFailed) {
  const auto outcome = talkThrough(
      30, [] { Fabric::the().fail("r0p0", IBV_EVENT_DEVICE_FATAL); }, optionsWith(4), 2);
  EXPECT_EQ(outcome.errors, test::none());
  EXPECT_TRUE(says(outcome.notes, "RDMA r0p0: the device failed, or was removed (IBV_EVENT_DEVICE_FATAL)"))
      << outcome.notes;
}

TEST(VerbsRecovery, AHardwareAddressThatIsFoundLateIsWaitedFor) {
  const auto outcome = talkThrough(30, [] {
    Fabric::the().failPairs("r1p0", IBV_WC_RETRY_EXC_ERR);
    Fabric::the().refuseConnections(2, ETIMEDOUT);
    Fabric::the().onConnect([] { std::this_thread::sleep_for(milliseconds(100)); });
  });
  EXPECT_EQ(outcome.errors, test::none()) << outcome.notes;
}

/// Rank 0 sends, until a link of either side fails; both are told where to look.
std::vector<std::string> sendInVain(VerbsCluster& cluster, milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  cluster[0].enter();
  test::publish(cluster[0].outbound(0, 1), {.bytes = 8});
  cluster[0].push(1);
  while (cluster.failuresOf(0).empty() && std::chrono::steady_clock::now() < deadline) {
    cluster[0].poll(1);
    cluster[0].nap(milliseconds(1));
    cluster[1].visit();
  }
  cluster[0].leave();
  return cluster.failuresOf(0);
}

TEST(VerbsRecovery, APortThatStaysDownIsAnErrorThatSaysWhere) {
  RdmaOptions options = optionsWith(4);
  options.recovery = milliseconds(400);
  VerbsCluster cluster(options);
  Fabric::the().breakAt(1, [] { Fabric::the().setPort("r0p0", false); });
  const auto failures = sendInVain(cluster, milliseconds(20'000));
  ASSERT_EQ(failures.size(), 1U);
  for (const char* part :
       {"no RDMA connection to rank 1 (on host 1) for 400 ms", "r0p0:1", "TUTTI_NET_RECOVERY"})
    EXPECT_TRUE(says(failures[0], part)) << failures[0];
}

TEST(VerbsRecovery, QueuePairsThatCannotBeMadeAreAnErrorAtOnce) {
  VerbsCluster cluster(optionsWith(4));
  Fabric::the().refusePairs(1, ENOMEM);
  const auto failures = sendInVain(cluster, milliseconds(20'000));
  ASSERT_EQ(failures.size(), 1U);
  for (const char* part : {"cannot connect to rank 1 (on host 1) by RDMA", "r0p0:1: making a queue pair with",
                           "Cannot allocate memory", "NCCL_IB_QPS_PER_CONNECTION", "ulimit -l"})
    EXPECT_TRUE(says(failures[0], part)) << failures[0];
}

TEST(VerbsRecovery, AnotherPortServesWhereQueuePairsCannotBeMade) {
  VerbsCluster cluster(optionsWith(4), 2, 2);
  Fabric::the().refusePairs(1, ENOMEM);
  EXPECT_EQ(converse(cluster, kTalk), test::none());
}

/// How a talk on this lane went, where lane 0 belongs to a ring that rank 0 leaves its host by r0p1.
std::string pathOfLane(std::uint32_t lane, bool is_up, std::uint32_t channels = 3) {
  test::Failures paths;
  RdmaOptions options = optionsWith(4);
  options.lanes = 3;
  options.channels = channels;
  options.ring_ports = {{.peer = 1, .channel = 0, .sends = true, .place = {.device = "r0p1"}}};
  options.tell_path = [&paths](const std::string& text) { paths.add(text); };
  VerbsCluster cluster(options, 2, 2);
  Fabric::the().setPort("r0p1", is_up);
  EXPECT_EQ(converse(cluster, {.seed = 3, .max_bytes = 512, .lane = lane}), test::none());
  const std::vector<std::string> all = paths.all();
  const auto told =
      std::ranges::find_if(all, [](const std::string& path) { return path.starts_with("RDMA with rank 0"); });
  return told == all.end() ? "none" : *told;
}

TEST(VerbsRecovery, ARingGoesByItsPortWhileThatIsUp) {
  EXPECT_TRUE(says(pathOfLane(0, true), "lane 0: from r0p1:1 ")) << pathOfLane(0, true);
  EXPECT_TRUE(says(pathOfLane(0, false), "lane 0: from r0p0:1 ")) << pathOfLane(0, false);
  EXPECT_TRUE(says(pathOfLane(2, true), "lane 2: from r0p0:1 ")) << pathOfLane(2, true);
  // One ring only: its lanes share out the ports.
  EXPECT_TRUE(says(pathOfLane(1, true, 1), "lane 1: from r0p0:1 ")) << pathOfLane(1, true, 1);
  EXPECT_TRUE(says(pathOfLane(2, true, 1), "lane 2: from r0p1:1 ")) << pathOfLane(2, true, 1);
}

TEST(VerbsRecovery, APeerThatRefusesSaysWhy) {
  RdmaOptions options = optionsWith(4);
  options.recovery = milliseconds(300);
  VerbsCluster cluster(options);
  Fabric::the().refuseConnections(1000, EHOSTUNREACH);
  const auto failures = sendInVain(cluster, milliseconds(20'000));
  ASSERT_EQ(failures.size(), 1U);
  for (const char* part :
       {"r1p0:1: queue pair to RTR: No route to host", "from GID 10.0.0.2", "to GID 10.0.0.1"})
    EXPECT_TRUE(says(failures[0], part)) << failures[0];
}

}  // namespace
}  // namespace tutti
