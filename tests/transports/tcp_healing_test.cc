// Links over TCP while connections break, stall and garble: nothing is lost, doubled or wrong.
#include <gtest/gtest.h>

#include "tests/transports/conversation.h"
#include "tests/transports/tcp_harness.h"
#include "transports/faulty/faulty_wire.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using test::Cluster;
using test::Inside;
using test::makeCluster;
using test::milliseconds;
using test::seconds;
using test::Talk;

std::vector<std::string> talkWith(const std::string& faults0, const std::string& faults1,
                                  NetworkOptions options, const Talk& talk) {
  NetworkOptions other = options;
  options.faults = faults0;
  other.faults = faults1;
  const bool breaks = faults0.find('c') != std::string::npos || faults1.find('c') != std::string::npos;
  return test::converse(makeCluster({options, other}), talk,
                        breaks ? test::Parting::announced : test::Parting::by_links);
}

// Rank 0 sends fewer bytes than kBytes in this conversation, credits and results among them.
constexpr Talk kShort{.seed = 11, .messages = 6, .max_bytes = 40};
constexpr int kBytes = 800;

void cutAtEveryByte(std::uint32_t slot_count, bool checksums) {
  for (int at = 0; at < kBytes; ++at) {
    const NetworkOptions options{.slot_count = slot_count, .slot_bytes = 64, .checksums = checksums};
    ASSERT_EQ(talkWith("cut:at=" + std::to_string(at), "", options, kShort), test::none()) << "at " << at;
  }
}

TEST(TcpHealing, CutAtEveryByteTwoSlots) { cutAtEveryByte(2, false); }
TEST(TcpHealing, CutAtEveryByteFourSlots) { cutAtEveryByte(4, true); }

TEST(TcpHealing, CutAgainAndAgain) {
  for (int seed = 1; seed <= 12; ++seed) {
    const std::string faults = "cut:every=4000;seed=" + std::to_string(seed);
    const NetworkOptions options{.slot_count = 2U + static_cast<std::uint32_t>(seed) % 4, .slot_bytes = 512};
    const Talk talk{.seed = static_cast<std::uint64_t>(seed), .messages = 300, .max_bytes = 512};
    EXPECT_EQ(talkWith(faults, faults, options, talk), test::none()) << "seed " << seed;
  }
}

TEST(TcpHealing, CutsOfLargeSlots) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 131072, .checksums = true};
  const Talk talk{.seed = 2, .messages = 100, .max_bytes = 131072};
  EXPECT_EQ(talkWith("cut:every=700000;seed=3", "cut:every=900000;seed=4", options, talk), test::none());
}

TEST(TcpHealing, CorruptAtEveryByteWithChecksums) {
  for (int at = 0; at < kBytes; ++at) {
    const NetworkOptions options{.slot_count = 4, .slot_bytes = 64, .checksums = true};
    ASSERT_EQ(talkWith("corrupt:at=" + std::to_string(at), "", options, kShort), test::none()) << "at " << at;
  }
}

TEST(TcpHealing, CorruptAgainAndAgainWithChecksums) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 4096, .checksums = true};
  const Talk talk{.seed = 9, .messages = 400, .max_bytes = 4096};
  EXPECT_EQ(talkWith("corrupt:every=60000;seed=5", "corrupt:every=50000;seed=6", options, talk),
            test::none());
}

/// Without checksums payloads are the user's risk, headers are not: every slot here is header only.
TEST(TcpHealing, CorruptHeadersAreFoundWithoutChecksums) {
  for (int at = 0; at < 6 * 64; ++at) {
    const NetworkOptions options{.slot_count = 4, .slot_bytes = 64, .checksums = false};
    const Talk talk{.seed = 3, .messages = 6, .max_bytes = 0};
    ASSERT_EQ(talkWith("corrupt:at=" + std::to_string(at), "", options, talk), test::none()) << "at " << at;
  }
}

TEST(TcpHealing, StallAndDelay) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 1024};
  const Talk talk{.seed = 4, .messages = 60, .max_bytes = 1024};
  EXPECT_EQ(talkWith("stall:at=5000,ms=300", "", options, talk), test::none());
  EXPECT_EQ(talkWith("stall:every=9000,ms=20", "delay:ms=2", options, talk), test::none());
  EXPECT_EQ(talkWith("delay:ms=3;cut:every=5000", "stall:at=0,ms=50", options, talk), test::none());
}

/// Both callers are gone when the connection breaks: their Watchers heal it. Returns what came altered.
std::uint64_t healAlone(const std::string& faults, bool checksums) {
  NetworkOptions options{.slot_count = 4, .slot_bytes = 1024, .checksums = checksums};
  NetworkOptions faulty = options;
  faulty.faults = faults;
  const Cluster cluster = makeCluster({faulty, options});
  const LinkView out = cluster[0].outbound(0, 1);
  const LinkView in = cluster[1].inbound(0, 0);
  {
    Inside inside(cluster[0]);
    for (std::uint64_t i = 0; i < 4; ++i) {
      test::fillPattern({out.slot(i), 1000}, 0, i);
      test::publish(out, {.bytes = 1000});
    }
    cluster[0].push(1);
  }
  const auto deadline = Clock::now() + test::kPatience;
  while (test::postedOn(in) < 4 && Clock::now() < deadline) {
    cluster[0].visit();
    cluster[1].visit();
  }
  EXPECT_EQ(test::postedOn(in), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(test::hasPattern({in.slot(i), 1000}, 0, i));
  EXPECT_EQ(cluster.failed(), test::none());
  EXPECT_EQ(cluster[0].alteredSlots(), 0U);
  return cluster[1].alteredSlots();
}

TEST(TcpHealing, AbsentCallersHeal) { EXPECT_EQ(healAlone("cut:at=1500", false), 0U); }
TEST(TcpHealing, WhatCameAlteredIsCounted) { EXPECT_EQ(healAlone("corrupt:at=1500", true), 1U); }

/// Drives rank 0 until a link of it has failed or `limit` is over.
std::vector<std::string> failuresWithin(const Cluster& cluster, milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (cluster.failures[0]->all().empty() && Clock::now() < end) {
    cluster[0].visit();
    std::this_thread::sleep_for(milliseconds(1));
  }
  // Once only.
  for (int i = 0; i < 50; ++i) cluster[0].visit();
  return cluster.failures[0]->all();
}

TEST(TcpHealing, PeerThatIsGoneIsNamed) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64, .recovery = milliseconds(300)};
  Cluster cluster = makeCluster({options, options});
  cluster.networks[1].reset();
  {
    Inside inside(cluster[0]);
    test::publish(cluster[0].outbound(0, 1), {.bytes = 8});
    cluster[0].push(1);
  }
  const auto failures = failuresWithin(cluster, seconds(30));
  ASSERT_EQ(failures.size(), 1U);
  for (const std::string part : {"rank 1 (here)", "127.0.0.1:", "Connection refused", "300 ms"}) {
    EXPECT_NE(failures[0].find(part), std::string::npos) << part << " in: " << failures[0];
  }
}

/// Both directions were in use when the peer vanished without a word.
TEST(TcpHealing, VanishedPeerFailsBothLinks) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64, .recovery = milliseconds(300)};
  for (const bool is_retired : {false, true}) {
    Cluster cluster = makeCluster({options, options});
    const auto side = [&](int self) {
      Inside inside(cluster[self]);
      test::Conversation(cluster[self], self, 1 - self, Talk{.messages = 10, .max_bytes = 64}).run();
    };
    ASSERT_EQ(test::together({[&] { side(0); }, [&] { side(1); }}), test::none());
    if (is_retired) cluster[0].retire(1);
    cluster.networks[1].reset();
    const auto end = Clock::now() + (is_retired ? milliseconds(600) : milliseconds(30000));
    while (cluster.failures[0]->all().size() < 2 && Clock::now() < end) cluster[0].visit();
    EXPECT_EQ(cluster.failures[0]->all().size(), is_retired ? 0U : 2U);
  }
}

TEST(TcpHealing, WrongSecretOfThePeerIsAFailureInWords) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64, .recovery = milliseconds(300)};
  Cluster cluster = makeCluster({options, options});
  // Somebody else listens there now.
  test::Listener other = test::listenOnLoopback();
  std::vector<TcpPeer> peers(2);
  peers[1] = {other.address, "rank 1 (here)"};
  NetworkOptions own = options;
  own.fail = [&](ncclResult_t, const std::string& text) { cluster.failures[0]->add(text); };
  cluster.networks[0] = std::make_unique<TcpNetwork>(UniqueFd(), test::secretOf(7), 0, peers, own);
  peers = {{cluster.addresses[0], "rank 0"}, {}};
  cluster.networks[1] =
      std::make_unique<TcpNetwork>(std::move(other.fd), test::secretOf(8), 1, peers, options);
  {
    Inside inside(cluster[0]);
    test::publish(cluster[0].outbound(0, 1), {.bytes = 8});
    cluster[0].push(1);
  }
  const auto end = Clock::now() + test::kPatience;
  while (cluster.failures[0]->all().empty() && Clock::now() < end) {
    cluster[0].visit();
    cluster[1].visit();
  }
  ASSERT_EQ(cluster.failures[0]->all().size(), 1U);
  EXPECT_EQ(test::postedOn(cluster[1].inbound(0, 0)), 0U);
}

TEST(FaultyWire, MalformedPlansAreRefused) {
  for (const char* text : {"cut", "cut:", "cut:at", "cut:at=", "cut:at=x", "cut:at=1,every=2", "cut:every=0",
                           "cut:ms=3", "tear:at=1", "delay:at=3", "delay:", "stall:ms=3", "seed=", "seed=-1",
                           "cut:at=1;;", "corrupt:at=1 "}) {
    try {
      parseFaults(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ncclInvalidUsage);
      EXPECT_NE(std::string(error.what()).find("TUTTI_FAULTS"), std::string::npos);
    }
  }
  EXPECT_THROW(makeCluster({NetworkOptions{.faults = "bad"}}), Error);
}

TEST(FaultyWire, PlansAreUnderstood) {
  const FaultPlan plan =
      parseFaults("cut:at=5;corrupt:every=7;delay:ms=2;stall:at=3,ms=9;stall:every=4;seed=8");
  ASSERT_EQ(plan.faults.size(), 5U);
  EXPECT_EQ(plan.seed, 8U);
  EXPECT_EQ(plan.faults[0].at, 5U);
  EXPECT_EQ(plan.faults[1].kind, Fault::Kind::corrupt);
  EXPECT_EQ(plan.faults[1].every, 7U);
  EXPECT_EQ(plan.faults[2].time, milliseconds(2));
  EXPECT_EQ(plan.faults[3].time, milliseconds(9));
  EXPECT_FALSE(plan.faults[4].time);
}

}  // namespace
}  // namespace tutti
