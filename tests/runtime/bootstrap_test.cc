// The rendezvous under attack: strangers, garbage, floods, wrong secrets, replays, altered messages.
#include "runtime/bootstrap/bootstrap.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/bootstrap/control_tree.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/reception.h"
#include "runtime/bootstrap/rendezvous.h"
#include "runtime/process.h"
#include "tests/harness/ranks.h"
#include "transports/listener.h"
#include "transports/secure_channel.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::seconds;

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

UniqueId open(std::chrono::milliseconds init_timeout = seconds(30)) {
  Process::instance();  // starts libsodium
  return decode(openRendezvous({.init_timeout = init_timeout, .is_for_this_process = true}));
}

Bootstrap joined(const UniqueId& id, int nranks, int rank) {
  return {id, nranks, rank, NetworkSettings{}, in(seconds(30))};
}

/// Connects, or not.
UniqueFd tryConnectTo(const UniqueId& id) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address = toSocketAddress(id.address);
  if (::connect(socket.get(), address.get(), address.length) != 0) return {};
  return socket;
}

UniqueFd connectTo(const UniqueId& id) {
  UniqueFd socket = tryConnectTo(id);
  EXPECT_TRUE(socket);
  return socket;
}

/// A rank joins, takes part in two rounds and leaves.
void attend(const UniqueId& id, int nranks, int rank) {
  Bootstrap bootstrap = joined(id, nranks, rank);
  for (int round = 0; round < 2; ++round) {
    const auto all = bootstrap.allGather(rank * 10 + round);
    for (int peer = 0; peer < nranks; ++peer) {
      if (all[static_cast<std::size_t>(peer)] != peer * 10 + round) throw std::runtime_error("wrong value");
    }
  }
  bootstrap.leave();
}

/// All ranks at once; returns what each threw.
std::vector<std::string> meet(const UniqueId& id, int nranks) {
  return test::runThreads(nranks, [&](int rank) { attend(id, nranks, rank); });
}

TEST(Bootstrap, ManyRanksMeet) { EXPECT_EQ(meet(open(), 64), test::noErrors(64)); }

TEST(Bootstrap, SilentStrangersDelayNobody) {
  const UniqueId id = open();
  std::vector<UniqueFd> strangers;
  strangers.reserve(200);
  for (int i = 0; i < 200; ++i) strangers.push_back(connectTo(id));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(meet(id, 4), test::noErrors(4));
  // 40 are let in at once, and stay for 1 s while others wait; for their 5 s it would take 25 s.
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(22));
}

/// Connections that say nothing, begin a proof, or say garbage; and some that end at once. The rendezvous may
/// have done its work before the last of them.
std::vector<UniqueFd> flood(const UniqueId& id, int count) {
  std::vector<UniqueFd> strangers;
  strangers.reserve(static_cast<std::size_t>(count));
  const std::string garbage(200, 'x');
  for (int i = 0; i < count; ++i) {
    UniqueFd stranger = tryConnectTo(id);
    const std::size_t said = i % 4 == 1 ? 40 : i % 4 == 2 ? garbage.size() : 0;  // a proof has 64 bytes
    ::send(stranger.get(), garbage.data(), said, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 4 != 3) strangers.push_back(std::move(stranger));
  }
  return strangers;
}

TEST(Bootstrap, AFloodWhileRanksJoinKeepsNobodyOut) {
  const UniqueId id = open();
  const auto before = flood(id, 150);
  std::vector<UniqueFd> meanwhile;
  std::thread attacker([&] { meanwhile = flood(id, 150); });
  EXPECT_EQ(meet(id, 8), test::noErrors(8));
  attacker.join();
}

TEST(Bootstrap, AFloodOfARanksListenerKeepsItsParentIn) {
  // Ranks 1 to 3 wait at their listeners, found here by their ports, until rank 0 comes.
  NetAddress first{.family = NetAddress::Family::ipv4, .port = 0, .scope = 0, .bytes = {127, 0, 0, 1}};
  listenOn(first, {}, "");  // finds a place in the port space; closed again
  NetworkSettings network{};
  network.first_port = std::min<std::uint16_t>(first.port, 65000);
  network.last_port = static_cast<std::uint16_t>(network.first_port + 20);
  const UniqueId id = open();
  const auto errors = test::runThreads(4, [&](int rank) {
    std::vector<UniqueFd> strangers;
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int port = network.first_port; rank == 0 && port <= network.last_port; ++port) {
      UniqueId victim = id;
      victim.address.port = static_cast<std::uint16_t>(port);
      for (int i = 0; i < 20; ++i) strangers.push_back(tryConnectTo(victim));
    }
    Bootstrap bootstrap(id, 4, rank, network, in(seconds(30)));
    bootstrap.allGather(rank);
    bootstrap.leave();
  });
  EXPECT_EQ(errors, test::noErrors(4));
}

TEST(Bootstrap, GarbageIsDroppedUnread) {
  const UniqueId id = open();
  const std::string garbage(100'000, 'x');
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(connectTo(id));
    ::send(strangers.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_EQ(meet(id, 3), test::noErrors(3));
}

TEST(Bootstrap, WrongSecretIsRefused) {
  const UniqueId id = open();
  UniqueId wrong = id;
  wrong.secret[5] ^= 1;
  try {
    Bootstrap bootstrap = joined(wrong, 1, 0);
    bootstrap.allGather(1);
    FAIL() << "joined with a wrong secret";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lost the rendezvous"), std::string::npos) << error.what();
  }
  EXPECT_EQ(meet(id, 2), test::noErrors(2));
}

TEST(Bootstrap, RecordedGreetingCannotBeReplayed) {
  const UniqueId id = open();
  // Records what an honest client sends, by standing in for the server with the true secret's nonce exchange.
  const UniqueFd first = connectTo(id);
  std::array<std::uint8_t, 32> nonce{};
  ASSERT_EQ(::recv(first.get(), nonce.data(), nonce.size(), MSG_WAITALL), 32);
  // An honest greeting for that nonce, computed here from the protocol's definition.
  std::array<std::uint8_t, 64> greeting{};
  randombytes_buf(greeting.data(), 32);
  Bytes text{'c', 'l', 'i', 'e', 'n', 't', 0};
  text.insert(text.end(), nonce.begin(), nonce.end());
  text.insert(text.end(), greeting.begin(), greeting.begin() + 32);
  crypto_auth(greeting.data() + 32, text.data(), text.size(), id.secret.data());
  ASSERT_EQ(::send(first.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL), 64);
  std::array<std::uint8_t, 32> answer{};
  ASSERT_EQ(::recv(first.get(), answer.data(), answer.size(), MSG_WAITALL),
            32);  // accepted: the recording is good
  // The same bytes on another connection meet another nonce.
  const UniqueFd second = connectTo(id);
  ASSERT_EQ(::recv(second.get(), nonce.data(), nonce.size(), MSG_WAITALL), 32);
  ASSERT_EQ(::send(second.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL), 64);
  EXPECT_LE(::recv(second.get(), answer.data(), answer.size(), MSG_WAITALL), 0);  // dropped
}

/// A rank may be stopped between its proof and what it has to say.
TEST(Bootstrap, WhoHasProvedHimselfIsNotCrowdedOut) {
  Process::instance();
  UniqueId id{
      .address = {.family = NetAddress::Family::ipv4, .port = 0, .scope = 0, .bytes = {127, 0, 0, 1}}};
  UniqueFd listener = listenOn(id.address, {}, "");
  Reception reception(std::move(listener), id.secret, 2);
  SecureChannel rank(connectTo(id), id.secret, SecureChannel::Role::client);
  while (!rank.established()) {
    rank.pump();
    reception.attend();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // from then on others take the places
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 6; ++i) {
    strangers.push_back(connectTo(id));
    EXPECT_TRUE(reception.attend().empty());
  }
  rank.send(Bytes{1, 2, 3});
  rank.pump();
  std::vector<Guest> guests;
  for (const auto end = in(seconds(10)); guests.empty() && std::chrono::steady_clock::now() < end;)
    guests = reception.attend();
  ASSERT_EQ(guests.size(), 1U);
  EXPECT_EQ(guests[0].greeting, (Bytes{1, 2, 3}));
}

struct ChannelPair {
  ChannelPair() {
    Process::instance();
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    raw_client = fds[0];
    client.emplace(UniqueFd(fds[0]), secret, SecureChannel::Role::client);
    server.emplace(UniqueFd(fds[1]), secret, SecureChannel::Role::server);
    for (int i = 0; i < 10 && !(client->established() && server->established()); ++i) {
      server->pump();
      client->pump();
    }
  }
  Secret secret{1, 2, 3};
  int raw_client = -1;
  std::optional<SecureChannel> client;
  std::optional<SecureChannel> server;
};

/// Another rank may be complete, destroy its communicator, and be gone, before this one has looked at what
/// completes it.
TEST(Tree, WhoIsCompleteAndGoneIsNotLost) {
  ChannelPair pair;
  TreeChannels tree;
  tree.add(0, std::move(*pair.client));
  const Bytes news{kFirstLaterType + 4, 1, 2};
  pair.server->send(message(MessageType::gathered));
  pair.server->send(news);
  pair.server->pump();
  pair.server.reset();
  ASSERT_NO_THROW(tree.pump());
  ASSERT_NO_THROW(tree.pump());
  EXPECT_EQ(tree.take(0), message(MessageType::gathered));
  const ControlTree released = tree.release(1);
  ASSERT_TRUE(released.parent);
  EXPECT_EQ(released.parent->early, std::deque<Bytes>{news});
}

TEST(Tree, WhoEndsWithoutBeingCompleteIsLost) {
  ChannelPair pair;
  TreeChannels tree;
  tree.add(0, std::move(*pair.client));
  pair.server->send(message(MessageType::gathered));
  pair.server->pump();
  pair.server.reset();
  EXPECT_THROW(tree.pump(), Error);
}

TEST(SecureChannel, CarriesMessagesBothWays) {
  ChannelPair pair;
  ASSERT_TRUE(pair.client->established() && pair.server->established());
  const Bytes big(300'000, 7);
  pair.client->send(Bytes{1, 2, 3});
  pair.client->send(big);
  pair.server->send(Bytes{});
  std::vector<Bytes> at_server;
  for (int i = 0; i < 100 && at_server.size() < 2; ++i) {
    pair.client->pump();
    pair.server->pump();
    while (auto message = pair.server->receive()) at_server.push_back(*message);
  }
  EXPECT_EQ(at_server, (std::vector<Bytes>{{1, 2, 3}, big}));
  pair.client->pump();
  EXPECT_EQ(pair.client->receive(), Bytes{});
}

TEST(SecureChannel, AlteredAndImpossibleMessagesEndIt) {
  {
    ChannelPair pair;
    const std::array<std::uint8_t, 24> forged{20, 0, 0, 0, 9, 9, 9};
    ASSERT_EQ(::send(pair.raw_client, forged.data(), forged.size(), 0), 24);
    pair.server->pump();
    EXPECT_EQ(pair.server->receive(), std::nullopt);
    EXPECT_FALSE(pair.server->pump());
    EXPECT_NE(pair.server->problem().find("altered"), std::string::npos);
  }
  {
    ChannelPair pair;
    const std::array<std::uint8_t, 4> huge{0xff, 0xff, 0xff, 0x7f};
    ASSERT_EQ(::send(pair.raw_client, huge.data(), huge.size(), 0), 4);
    pair.server->pump();
    EXPECT_EQ(pair.server->receive(), std::nullopt);
    EXPECT_FALSE(pair.server->pump());
  }
}

TEST(Bootstrap, MissingRanksAreNamed) {
  const UniqueId id = open(std::chrono::milliseconds(300));
  try {
    Bootstrap bootstrap = joined(id, 4, 2);
    bootstrap.allGather(1);
    FAIL() << "met ranks that are not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ncclSystemError);
    EXPECT_NE(std::string(error.what()).find("3 of 4 ranks did not come"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 0, 1, 3"), std::string::npos) << error.what();
  }
}

TEST(Bootstrap, LeavingRankIsNamedToTheOthers) {
  const UniqueId id = open();
  const auto errors = test::runThreads(2, [&](int rank) {
    Bootstrap bootstrap = joined(id, 2, rank);
    bootstrap.allGather(1);
    if (rank == 0) bootstrap.allGather(2);  // rank 1 closes its connection instead
  });
  EXPECT_NE(errors[0].find("rank 1 (pid "), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("left while the communicator was being made"), std::string::npos) << errors[0];
}

TEST(Bootstrap, FailureOfOneIsTheErrorOfAll) {
  const UniqueId id = open();
  const auto errors = test::runThreads(2, [&](int rank) {
    Bootstrap bootstrap = joined(id, 2, rank);
    if (rank == 1) return bootstrap.fail("rank 1 has no memory");
    bootstrap.allGather(1);
  });
  EXPECT_EQ(errors[0], "rank 1 has no memory");
}

TEST(Bootstrap, PortInUseIsNamed) {
  const UniqueId taken = open();
  try {
    openRendezvous({.init_timeout = seconds(1), .port = taken.address.port, .is_for_this_process = true});
    FAIL() << "listened on a port in use";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ncclSystemError);
    const std::string text = error.what();
    EXPECT_NE(text.find("port " + std::to_string(taken.address.port)), std::string::npos) << text;
    EXPECT_NE(text.find("TUTTI_BOOTSTRAP_PORT"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti
