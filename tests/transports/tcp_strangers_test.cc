// Who else dials: none of them disturbs the links or gets anything.
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/transports/conversation.h"
#include "tests/transports/tcp_harness.h"
#include "transports/listener.h"
#include "transports/tcp/handshake.h"

namespace tutti {
namespace {

UniqueFd connectTo(const NetAddress& address) {
  int error = 0;
  return startConnect(address, &error);
}

using test::Cluster;
using test::makeCluster;
using test::milliseconds;
using test::seconds;
using test::Talk;

constexpr Talk kTalk{.seed = 1, .messages = 200, .max_bytes = 256};
const NetworkOptions kOptions{.slot_count = 4, .slot_bytes = 256};

TEST(TcpStrangers, SilentOnesAndGarbageDisturbNothing) {
  const Cluster cluster = makeCluster({kOptions, kOptions});
  const std::string garbage(10'000, 'x');
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 150; ++i) {
    strangers.push_back(connectTo(cluster.addresses[static_cast<std::size_t>(i % 2)]));
    ASSERT_TRUE(strangers.back());
    if (i % 3 == 0) ::send(strangers.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(test::converse(cluster, kTalk), test::none());
}

TEST(TcpStrangers, AFloodWhileTalking) {
  const Cluster cluster = makeCluster({kOptions, kOptions});
  std::atomic<bool> done{false};
  std::thread flood([&] {
    std::vector<UniqueFd> strangers(100);
    for (std::size_t i = 0; !done; ++i) {
      strangers[i % strangers.size()] = UniqueFd();
      strangers[i % strangers.size()] = connectTo(cluster.addresses[i % 2]);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  EXPECT_EQ(test::converse(cluster, {.seed = 2, .messages = 2000, .max_bytes = 256}), test::none());
  done = true;
  flood.join();
}

/// A client of the handshake, pumped together with the network that it dials.
class Client {
 public:
  Client(const Cluster& cluster, const Secret& secret)
      : network_(cluster[0]),
        channel_(connectTo(cluster.addresses[0]), secret, SecureChannel::Role::client) {}

  /// Whether `done` comes true before the channel ends.
  template <class Done>
  bool pumpUntil(Done done) {
    const auto deadline = Clock::now() + seconds(20);
    while (Clock::now() < deadline) {
      network_.visit();
      const bool is_usable = channel_.pump();
      if (done()) return true;
      if (!is_usable) return false;
    }
    ADD_FAILURE() << "neither done nor ended";
    return false;
  }

  bool prove() {
    return pumpUntil([&] { return channel_.established(); });
  }
  std::optional<Answer> ask(const Hello& hello) {
    channel_.send(toBytes(hello));
    std::optional<Bytes> answer;
    pumpUntil([&] { return (answer = channel_.receive()).has_value(); });
    return answer ? fromBytes<Answer>(*answer) : std::nullopt;
  }
  bool isDropped() {
    return !pumpUntil([] { return false; });
  }
  UniqueFd takeSocket() {
    Bytes rest;
    return channel_.takeSocket(&rest);
  }

 private:
  TcpNetwork& network_;
  SecureChannel channel_;
};

constexpr Hello kGoodHello{.from = 1, .to = 0, .lane = 0, .slot_count = 4, .epoch = 1, .released = 0};

TEST(TcpStrangers, WrongSecretIsDropped) {
  const Cluster cluster = makeCluster({kOptions, kOptions});
  Client client(cluster, test::secretOf(9));
  EXPECT_FALSE(client.prove());
}

TEST(TcpStrangers, SenselessGreetingsAreDropped) {
  const Cluster cluster = makeCluster({kOptions, kOptions});
  std::vector<Hello> greetings(8, kGoodHello);
  greetings[0].magic ^= 1;
  greetings[1].from = 0;
  greetings[2].from = 2;
  greetings[3].from = -1;
  greetings[4].to = 1;
  greetings[5].lane = 1;
  greetings[6].released = 5;
  greetings[7].epoch = 0;
  for (std::size_t i = 0; i < greetings.size(); ++i) {
    Client client(cluster, test::secretOf(7));
    ASSERT_TRUE(client.prove());
    EXPECT_FALSE(client.ask(greetings[i])) << i;
  }
  Client client(cluster, test::secretOf(7));
  ASSERT_TRUE(client.prove());
  const auto answer = client.ask(kGoodHello);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->posted, 0U);
}

TEST(TcpStrangers, OlderGreetingIsFenced) {
  const Cluster cluster = makeCluster({kOptions, kOptions});
  Hello late = kGoodHello;
  late.epoch = 5;
  Client first(cluster, test::secretOf(7));
  ASSERT_TRUE(first.prove());
  Client second(cluster, test::secretOf(7));
  ASSERT_TRUE(second.prove());
  ASSERT_TRUE(second.ask(late));
  EXPECT_FALSE(first.ask(kGoodHello));
  // And a newer one ends the older connection before it is answered.
  const UniqueFd old = second.takeSocket();
  late.epoch = 6;
  Client third(cluster, test::secretOf(7));
  ASSERT_TRUE(third.prove());
  ASSERT_TRUE(third.ask(late));
  pollfd end{old.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 20'000), 1) << "the older connection goes on";
  char byte = 0;
  EXPECT_EQ(::recv(old.get(), &byte, 1, 0), 0);
}

/// A proved sender that then sends nonsense loses its connection, and nothing of it counts.
TEST(TcpStrangers, ViolationsOfTheProtocolAreCutOff) {
  for (int kind = 0; kind < 4; ++kind) {
    NetworkOptions options = kOptions;
    options.recovery = milliseconds(100);
    const Cluster cluster = makeCluster({options, options});
    Client client(cluster, test::secretOf(7));
    ASSERT_TRUE(client.prove());
    ASSERT_TRUE(client.ask(kGoodHello));
    const UniqueFd socket = client.takeSocket();
    SlotHeader header{.bytes = 8};
    std::uint64_t good = 1;
    if (kind == 0) header.bytes = 257;   // more than a slot
    if (kind == 1) header.sequence = 1;  // not the next one
    SlotHeader wire = toWire(header, {}, false);
    if (kind == 2) wire.scale = 4;  // altered
    if (kind == 3) {                // more slots than there are
      good = 4;
      for (std::uint64_t i = 0; i < 5; ++i) {
        const SlotHeader slot = toWire({.sequence = i}, {}, false);
        ASSERT_EQ(::send(socket.get(), &slot, sizeof(slot), MSG_NOSIGNAL), 64);
        ASSERT_EQ(::send(socket.get(), "", 1, MSG_NOSIGNAL), 1);  // the pad
      }
    } else {
      good = 0;
      const std::string text(1000, 'y');
      ASSERT_EQ(::send(socket.get(), &wire, sizeof(wire), MSG_NOSIGNAL), 64);
      ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
    const auto end = Clock::now() + test::kPatience;
    while (cluster.failures[0]->all().empty() && Clock::now() < end) cluster[0].visit();
    EXPECT_EQ(cluster.failures[0]->all().size(), 1U) << kind;
    EXPECT_EQ(test::postedOn(cluster[0].inbound(0, 1)), good) << kind;
  }
}

}  // namespace
}  // namespace tutti
