// Links over TCP while the network is well: every message arrives once, whole and in order.
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>

#include "tests/transports/conversation.h"
#include "tests/transports/tcp_harness.h"
#include "transports/tcp/sockets.h"

namespace tutti {
namespace {

using test::Cluster;
using test::Inside;
using test::makeCluster;
using test::seconds;
using test::Talk;

std::vector<std::string> talkOnce(const NetworkOptions& options, const Talk& talk) {
  return test::converse(makeCluster({options, options}), talk);
}

TEST(TcpExchange, EveryKindOfSlotBothWays) {
  for (const std::uint32_t slot_count : {2U, 3U, 4U, 8U}) {
    for (const bool checksums : {false, true}) {
      SCOPED_TRACE(slot_count);
      const NetworkOptions options{.slot_count = slot_count, .slot_bytes = 1024, .checksums = checksums};
      EXPECT_EQ(talkOnce(options, {.seed = slot_count, .messages = 2000, .max_bytes = 1024}), test::none());
    }
  }
}

TEST(TcpExchange, LargeSlots) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 131072, .checksums = true};
  EXPECT_EQ(talkOnce(options, {.seed = 3, .messages = 300, .max_bytes = 131072}), test::none());
}

TEST(TcpExchange, TinySlots) {
  const NetworkOptions options{.slot_count = 8, .slot_bytes = 16};
  EXPECT_EQ(talkOnce(options, {.seed = 4, .messages = 5000, .max_bytes = 16}), test::none());
}

TEST(TcpExchange, LazyCreditsSuffice) {
  for (const std::uint32_t slot_count : {2U, 4U, 16U}) {
    const NetworkOptions options{.slot_count = slot_count, .slot_bytes = 64};
    const Talk talk{.seed = 5, .messages = 3000, .max_bytes = 64, .inline_only = true};
    EXPECT_EQ(talkOnce(options, talk), test::none()) << slot_count;
  }
}

/// In an order without a circle of waits: every pair of three ranks by itself, on both lanes.
void talkOnTwoLanes(TcpNetwork& network, int self) {
  Inside inside(network);
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{0, 2}, std::pair{1, 2}}) {
    if (self != a && self != b) continue;
    for (std::uint32_t lane = 0; lane < 2; ++lane) {
      const Talk talk{.seed = lane, .messages = 300, .max_bytes = 4096, .lane = lane};
      test::Conversation(network, self, self == a ? b : a, talk).run();
    }
  }
}

TEST(TcpExchange, ThreeRanksTwoLanes) {
  const NetworkOptions options{.lanes = 2, .slot_count = 4, .slot_bytes = 4096};
  const Cluster cluster = makeCluster({options, options, options});
  std::atomic<int> arrived{0};
  const auto rank = [&](int self) {
    talkOnTwoLanes(cluster[self], self);
    ++arrived;
    test::serveUntil(cluster[self], arrived, 3);
    EXPECT_TRUE(cluster[self].drain(Clock::now() + seconds(20)));
  };
  EXPECT_EQ(test::together({[&] { rank(0); }, [&] { rank(1); }, [&] { rank(2); }}), test::none());
  EXPECT_EQ(cluster.failed(), test::none());
}

/// A rank that waits for another one must not sit on credits of the first.
TEST(TcpExchange, WhoWaitsOwesNoCredits) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64};
  const Cluster cluster = makeCluster({options, options, options});
  std::atomic<bool> has_room{false};
  const auto sender = [&] {
    Inside inside(cluster[0]);
    const LinkView link = cluster[0].outbound(0, 1);
    for (int i = 0; i < 4; ++i) test::publish(link, {.bytes = 8});
    cluster[0].push(1);
    test::waitFor(cluster[0], 1, [&] { return test::hasRoom(link); });
    has_room = true;
  };
  const auto receiver = [&] {
    Inside inside(cluster[1]);
    const LinkView link = cluster[1].inbound(0, 0);
    test::waitFor(cluster[1], 0, [&] { return test::postedOn(link) == 4; });
    test::releaseOne(link);  // one of four: not due
    cluster[1].push(0);
    test::waitFor(cluster[1], 2, [&] { return has_room.load(); });
  };
  EXPECT_EQ(test::together({sender, receiver}), test::none());
}

class TcpEnds : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WhatIs, TcpEnds, testing::Bool(),
                         [](const auto& pushed) { return pushed.param ? "Pushed" : "PostedByAKernel"; });

/// The other side computes; only its Watcher looks after its links.
TEST_P(TcpEnds, AbsentCallerIsServed) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 1024};
  const Cluster cluster = makeCluster({options, options});
  const LinkView out = cluster[0].outbound(0, 1);
  const LinkView in = cluster[1].inbound(0, 0);
  std::atomic<bool> drained{false};
  const auto sender = [&] {
    {
      Inside inside(cluster[0]);
      for (std::uint64_t i = 0; i < 4; ++i) {
        test::fillPattern({out.slot(i), 1000}, 0, i);
        test::publish(out, {.bytes = 1000});
      }
      if (GetParam()) cluster[0].push(1);
    }
    EXPECT_TRUE(cluster[0].drain(Clock::now() + seconds(20)));
    drained = true;
  };
  const auto watcher = [&] {
    const auto deadline = Clock::now() + test::kPatience;
    while (!drained || test::postedOn(in) != 4) {
      EXPECT_NE(cluster[1].visit(), TcpNetwork::Visit::busy);
      if (Clock::now() > deadline) throw std::runtime_error("never arrived");
    }
  };
  EXPECT_EQ(test::together({sender, watcher}), test::none());
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(test::hasPattern({in.slot(i), 1000}, 0, i));
  // The sender has said good-bye: its end is no failure.
  EXPECT_EQ(cluster.failed(), test::none());
}

/// Of all connections of this process.
std::size_t allUnacknowledgedBytes() {
  std::size_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int protocol = 0;
    int listens = 0;
    socklen_t size = sizeof(protocol);
    if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) continue;
    size = sizeof(listens);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens != 0) continue;
    bytes += unacknowledgedBytes(fd);
  }
  return bytes;
}

/// A sender that ends waits until its kernel knows that all has arrived. Left alone, a kernel says so 40 ms
/// later, in every round; with luck, this thread was off the processor for that long.
TEST(TcpExchange, WhatArrivedIsAcknowledgedWhenNobodyIsInside) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64};
  const Cluster cluster = makeCluster({options, options});
  const LinkView out = cluster[0].outbound(0, 1);
  const LinkView in = cluster[1].inbound(0, 0);
  const auto serveUntil = [&](const auto& done) {
    const auto deadline = Clock::now() + test::kPatience;
    while (!done()) {
      cluster[0].visit();
      cluster[1].visit();
      if (Clock::now() > deadline) throw std::runtime_error("never arrived");
    }
  };
  constexpr std::uint64_t kRounds = 20;
  std::uint64_t acknowledged = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    {
      Inside inside(cluster[0]);
      test::publish(out, {.bytes = 8});
      cluster[0].push(1);
    }
    serveUntil([&] { return test::postedOn(in) == round; });
    {
      Inside inside(cluster[1]);
      test::releaseOne(in);
    }
    serveUntil([&] { return test::releasedOn(out) == round; });
    acknowledged += allUnacknowledgedBytes() == 0 ? 1U : 0U;
  }
  EXPECT_GE(acknowledged, kRounds / 2);
  EXPECT_EQ(cluster.failed(), test::none());
}

TEST(TcpExchange, WatcherIsWokenByTheNextLeave) {
  const Cluster cluster = makeCluster({NetworkOptions{}, NetworkOptions{}});
  TcpNetwork& network = cluster[0];
  int woken = 0;
  network.onLeave([&] { ++woken; });
  network.enter();
  std::thread([&] { EXPECT_EQ(network.visit(), TcpNetwork::Visit::busy); }).join();
  network.leave();
  EXPECT_EQ(woken, 0);
  while (network.visit() != TcpNetwork::Visit::idle) continue;
  network.enter();
  network.enter();
  network.leave();
  EXPECT_EQ(woken, 0);
  network.leave();
  network.enter();
  network.leave();
  EXPECT_EQ(woken, 1);
}

/// An idle Watcher that sleeps on fd() alone learns of a peer that dials and sends.
TEST(TcpExchange, DescriptorTellsOfNews) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64};
  const Cluster cluster = makeCluster({options, options});
  const LinkView in = cluster[1].inbound(0, 0);
  std::atomic<bool> done{false};
  const auto sender = [&] {
    Inside inside(cluster[0]);
    const LinkView out = cluster[0].outbound(0, 1);
    for (int i = 0; i < 20; ++i) {
      test::waitFor(cluster[0], 1, [&] { return test::hasRoom(out); });
      test::publish(out, {.returns = 1, .bytes = 8});
      cluster[0].push(1);
      test::waitFor(cluster[0], 1, [&] { return test::releasedOn(out) == test::postedOn(out); });
    }
    done = true;
  };
  const auto watcher = [&] {
    const auto deadline = Clock::now() + test::kPatience;
    while (!done) {
      const auto visit = cluster[1].visit();
      while (test::postedOn(in) > test::releasedOn(in)) {
        Inside inside(cluster[1]);
        test::releaseOne(in);
      }
      if (visit == TcpNetwork::Visit::idle) {
        pollfd news{cluster[1].fd(), POLLIN, 0};
        ::poll(&news, 1, 100);
      }
      if (Clock::now() > deadline) throw std::runtime_error("never done");
    }
  };
  EXPECT_EQ(test::together({sender, watcher}), test::none());
}

std::size_t openFiles() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.is_symlink() ? 1 : 0;
  }
  return count;
}

TEST(TcpExchange, NoDescriptorIsLeft) {
  const std::size_t before = openFiles();
  const NetworkOptions options{.slot_count = 2, .slot_bytes = 256, .checksums = true};
  EXPECT_EQ(talkOnce(options, {.seed = 6, .messages = 50, .max_bytes = 256}), test::none());
  {
    NetworkOptions cutting = options;
    cutting.faults = "cut:every=3000";
    const Talk talk{.seed = 6, .messages = 300, .max_bytes = 256};
    EXPECT_EQ(test::converse(makeCluster({cutting, cutting}), talk, test::Parting::announced), test::none());
  }
  EXPECT_EQ(openFiles(), before);
}

TEST(TcpExchange, HaltTouchesNoLentMemory) {
  const NetworkOptions options{.slot_count = 4, .slot_bytes = 64};
  const Cluster cluster = makeCluster({options, options});
  std::vector<std::byte> lent(64, std::byte{1});
  const LinkView out = cluster[0].outbound(0, 1);
  {
    Inside inside(cluster[0]);
    const auto address = std::bit_cast<std::uint64_t>(lent.data());
    test::publish(out,
                  {.kind = SlotKind::address, .returns = 1, .bytes = 64, .from = address, .to = address});
    cluster[0].push(1);
    cluster[0].halt();
  }
  const LinkView in = cluster[1].inbound(0, 0);
  const auto end = Clock::now() + std::chrono::milliseconds(50);
  while (Clock::now() < end) {
    cluster[0].visit();
    cluster[1].visit();
  }
  EXPECT_EQ(test::postedOn(in), 0U);
  EXPECT_EQ(cluster[0].visit(), TcpNetwork::Visit::idle);
  EXPECT_FALSE(cluster[0].drain(Clock::now() + seconds(5)));
}

}  // namespace
}  // namespace tutti
