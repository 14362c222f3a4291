// The tree of ranks: all-gathers of many sizes, and how a failure reaches everybody.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/dial.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/reception.h"
#include "runtime/bootstrap/rendezvous.h"
#include "runtime/process.h"
#include "tests/harness/ranks.h"
#include "transports/listener.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::seconds;

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

UniqueId open(const NetworkSettings& network = {}) {
  Process::instance();  // starts libsodium
  return decode(openRendezvous(
      {.init_timeout = seconds(60), .network = network, .is_for_this_process = network.interfaces.empty()}));
}

/// 512 bytes, of which every word depends on the rank.
struct Value {
  std::array<std::int32_t, 128> words;
};

Value valueOf(int rank, int round) {
  Value value{};
  for (std::size_t i = 0; i < value.words.size(); ++i) {
    value.words[i] = rank * 1000 + round * 500 + static_cast<std::int32_t>(i);
  }
  return value;
}

void requireGathered(Bootstrap& bootstrap, int nranks, int rank, int round) {
  const auto all = bootstrap.allGather(valueOf(rank, round));
  if (all.size() != static_cast<std::size_t>(nranks)) throw std::runtime_error("wrong number of values");
  for (int peer = 0; peer < nranks; ++peer) {
    if (all[static_cast<std::size_t>(peer)].words != valueOf(peer, round).words) {
      throw std::runtime_error("wrong value");
    }
  }
}

/// Of other lengths for each rank, also none.
Bytes textOf(int rank) {
  return Bytes(static_cast<std::size_t>(rank % 5 * 1000), static_cast<std::uint8_t>(rank));
}

void requireTexts(Bootstrap& bootstrap, int nranks, int rank) {
  const std::vector<Bytes> all = bootstrap.allGatherBytes(textOf(rank));
  if (all.size() != static_cast<std::size_t>(nranks)) throw std::runtime_error("wrong number of texts");
  for (int peer = 0; peer < nranks; ++peer) {
    if (all[static_cast<std::size_t>(peer)] != textOf(peer)) throw std::runtime_error("wrong text");
  }
}

std::vector<std::string> meet(const UniqueId& id, int nranks, const NetworkSettings& network = {}) {
  return test::runThreads(nranks, [&](int rank) {
    Bootstrap bootstrap(id, nranks, rank, network, in(seconds(60)));
    for (int round = 0; round < 3; ++round) requireGathered(bootstrap, nranks, rank, round);
    requireTexts(bootstrap, nranks, rank);
    bootstrap.barrier();
    bootstrap.leave();
  });
}

TEST(Values, OfDifferentLengthsAreRefusedWhereOneWasAgreed) {
  const UniqueId id = open();
  const auto errors = test::runThreads(2, [&](int rank) {
    Bootstrap bootstrap(id, 2, rank, {}, in(seconds(60)));
    if (rank == 0) {
      bootstrap.allGather(std::int64_t{1});
    } else {
      bootstrap.allGather(std::int32_t{1});
    }
  });
  // Both find it, and the first to do so tells the other.
  for (const std::string& error : errors) {
    const bool is_named = error.find("rank 1 gave 4 bytes where 8 were expected") != std::string::npos ||
                          error.find("rank 0 gave 8 bytes where 4 were expected") != std::string::npos;
    EXPECT_TRUE(is_named) << error;
  }
}

TEST(Values, ThatAreTooManyForOneMessageFailOnAllRanks) {
  const UniqueId id = open();
  const auto errors = test::runThreads(2, [&](int rank) {
    Bootstrap bootstrap(id, 2, rank, {}, in(seconds(60)));
    bootstrap.allGatherBytes(Bytes(600000));
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 0: 1200016 bytes of values are too many for one message"), std::string::npos)
        << error;
  }
}

class Tree : public testing::TestWithParam<int> {};

TEST_P(Tree, GathersAllValues) { EXPECT_EQ(meet(open(), GetParam()), test::noErrors(GetParam())); }

TEST_P(Tree, FailureOfOneIsTheErrorOfAll) {
  const int nranks = GetParam();
  for (const int failing : {0, nranks / 2, nranks - 1}) {
    const UniqueId id = open();
    const auto errors = test::runThreads(nranks, [&](int rank) {
      Bootstrap bootstrap(id, nranks, rank, {}, in(seconds(60)));
      requireGathered(bootstrap, nranks, rank, 0);
      if (rank == failing) {
        bootstrap.fail("no memory there");
        throw std::runtime_error("failed");
      }
      requireGathered(bootstrap, nranks, rank, 1);
    });
    for (int rank = 0; rank < nranks; ++rank) {
      EXPECT_EQ(errors[static_cast<std::size_t>(rank)], rank == failing ? "failed" : "no memory there");
    }
  }
}

TEST_P(Tree, RankThatEndsIsNamedToAll) {
  const int nranks = GetParam();
  for (const int ending : {0, nranks / 2, nranks - 1}) {
    const UniqueId id = open();
    const auto errors = test::runThreads(nranks, [&](int rank) {
      Bootstrap bootstrap(id, nranks, rank, {}, in(seconds(60)));
      requireGathered(bootstrap, nranks, rank, 0);
      if (rank == ending) return;  // without a word
      requireGathered(bootstrap, nranks, rank, 1);
    });
    for (int rank = 0; rank < nranks; ++rank) {
      if (rank == ending) continue;
      const std::string& error = errors[static_cast<std::size_t>(rank)];
      EXPECT_EQ(error.find("rank " + std::to_string(ending) + " (pid "), 0U) << error;
      EXPECT_NE(error.find("left while the communicator was being made"), std::string::npos) << error;
    }
  }
}

TEST_P(Tree, IsHandedOver) {
  const int nranks = GetParam();
  const UniqueId id = open();
  // What a child says to its parent's next owner, right after the last collective, gets there.
  const auto errors = test::runThreads(nranks, [&](int rank) {
    Bootstrap bootstrap(id, nranks, rank, {}, in(seconds(60)));
    requireGathered(bootstrap, nranks, rank, 0);
    bootstrap.barrier();
    ControlTree tree = bootstrap.takeTree();
    const UniqueFd listener = bootstrap.takeListener();
    if (localAddress(listener.get()) != bootstrap.address()) throw std::runtime_error("another listener");
    if (tree.parent.has_value() != (rank != 0)) throw std::runtime_error("wrong parent");
    if (tree.children.size() != treeChildren(rank, nranks).size()) throw std::runtime_error("wrong children");
    if (tree.parent) {
      tree.parent->channel.send(bytesOf(rank));
      while (tree.parent->channel.pump() && tree.parent->channel.wantsToWrite()) std::this_thread::yield();
    }
    for (Neighbour& child : tree.children) {
      std::optional<Bytes> received;
      while (!(received = child.channel.receive()) && child.channel.pump()) std::this_thread::yield();
      if (!received) received = child.channel.receive();
      int said = -1;
      if (received && received->size() == sizeof(said)) std::memcpy(&said, received->data(), sizeof(said));
      if (said != child.rank) throw std::runtime_error("a child's word is lost");
    }
  });
  EXPECT_EQ(errors, test::noErrors(nranks));
}

/// What arrives next at a socket that blocks, at most four bytes; empty at its end, and where nothing comes.
std::string readFrom(int socket) {
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  std::array<char, 4> bytes;
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// Rank 0 has all that it needs while rank 1 still waits for the last collective, and its data connection
/// comes before rank 1 has taken its listener.
TEST(Handover, WhoDialsEarlyIsHeardByWhoeverTakesTheListener) {
  const UniqueId id = open();
  const auto errors = test::runThreads(2, [&](int rank) {
    Bootstrap bootstrap(id, 2, rank, {}, in(seconds(60)));
    const auto addresses = bootstrap.allGather(bootstrap.address());
    bootstrap.barrier();  // rank 1 is done with its first collective, after which it lets nobody in
    UniqueFd socket;
    if (rank == 0) {
      const SocketAddress to = toSocketAddress(addresses[1]);
      socket = UniqueFd(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket.get(), to.get(), to.length) != 0) throw std::runtime_error("no way to rank 1");
      ::send(socket.get(), "data", 4, MSG_NOSIGNAL);
    }
    bootstrap.barrier();  // rank 1 hears of its end by the same poll as of the connection
    if (rank == 1) {
      const UniqueFd listener = bootstrap.takeListener();
      pollfd events{listener.get(), POLLIN, 0};
      if (::poll(&events, 1, 20'000) != 1) throw std::runtime_error("nobody waits in the listener");
      socket = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ::send(socket.get(), "read", 4, MSG_NOSIGNAL);
    }
    const std::string heard = readFrom(socket.get());
    if (heard != (rank == 0 ? "read" : "data")) throw std::runtime_error("heard \"" + heard + "\"");
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

INSTANTIATE_TEST_SUITE_P(Numbers, Tree, testing::Values(1, 2, 17, 18, 40));

TEST(TreeShape, ParentsAndChildrenAgree) {
  for (const int nranks : {1, 2, 16, 17, 18, 273, 274, 1024}) {
    int children = 0;
    for (int rank = 0; rank < nranks; ++rank) {
      const auto mine = treeChildren(rank, nranks);
      children += static_cast<int>(mine.size());
      EXPECT_LE(mine.size(), 16U);
      for (const int child : mine) EXPECT_EQ(treeParent(child), rank);
    }
    EXPECT_EQ(children, nranks - 1);
  }
}

TEST(Networks, RanksMeetOverIpv6) {
  NetworkSettings network{};
  network.interfaces = "=lo";
  network.family = "AF_INET6";
  const UniqueId id = open(network);
  EXPECT_EQ(hostText(id.address), "::1");
  EXPECT_EQ(meet(id, 18, network), test::noErrors(18));
}

TEST(Networks, RanksListenInThePortRange) {
  NetAddress probe = parseNumericHost("127.0.0.1").value();
  listenOn(probe, {}, "");  // finds a place in the port space; closed again
  NetworkSettings network{};
  network.interfaces = "lo";
  network.first_port = std::min<std::uint16_t>(probe.port, 65000);
  network.last_port = static_cast<std::uint16_t>(network.first_port + 40);
  const UniqueId id = open(network);
  EXPECT_GE(id.address.port, network.first_port);
  EXPECT_LE(id.address.port, network.last_port);
  const auto errors = test::runThreads(3, [&](int rank) {
    Bootstrap bootstrap(id, 3, rank, network, in(seconds(30)));
    if (bootstrap.address().port < network.first_port || bootstrap.address().port > network.last_port) {
      throw std::runtime_error("outside the range");
    }
    bootstrap.barrier();
    bootstrap.leave();
  });
  EXPECT_EQ(errors, test::noErrors(3));
}

TEST(Networks, ARankWithoutAnInterfaceIsTheErrorOfAll) {
  const UniqueId id = open();
  const auto errors = test::runThreads(3, [&](int rank) {
    NetworkSettings network{};
    if (rank == 1) network.interfaces = "nosuch";
    Bootstrap bootstrap(id, 3, rank, network, in(seconds(30)));
    bootstrap.barrier();
  });
  EXPECT_EQ(errors[1].find("no network interface is left by NCCL_SOCKET_IFNAME=\"nosuch\""), 0U) << errors[1];
  for (const int rank : {0, 2}) {
    const std::string& error = errors[static_cast<std::size_t>(rank)];
    EXPECT_EQ(error.find("rank 1 (pid "), 0U) << error;
    EXPECT_NE(error.find("NCCL_SOCKET_IFNAME=\"nosuch\""), std::string::npos) << error;
  }
}

RankAddress stranger(const NetAddress& address = {}) {
  RankAddress where{.address = address, .pid = 4711, .host = {}};
  ::gethostname(where.host.data(), where.host.size() - 1);
  return where;
}

/// Joins by hand; returns the error that the rendezvous answers with, or "joined".
std::string join(const UniqueId& id, const JoinMessage& join) {
  Dial dial({.to = id.address, .secret = id.secret, .deadline = in(seconds(30))});
  for (dial.pump(); !dial.established() && !dial.failed(); dial.pump()) std::this_thread::yield();
  if (!dial.established()) return "not let in: " + dial.problem();
  SecureChannel channel = dial.take();
  channel.send(message(MessageType::join, bytesOf(join)));
  std::optional<Bytes> answer;
  while (!(answer = channel.receive()) && channel.pump()) std::this_thread::yield();
  if (!answer) answer = channel.receive();
  if (!answer) return "no answer";
  return typeOf(*answer) == MessageType::joined ? "joined" : readFailed(payloadOf(*answer)).what();
}

/// What a lone rank 0 of 2 is told after `other` has joined. By hand, too, so that it surely comes first; it
/// listens `pause` later.
std::string errorOfRank0(const JoinMessage& other, std::string* answer, seconds pause = {}) {
  const UniqueId id = open();
  NetAddress address = parseNumericHost("127.0.0.1").value();
  UniqueFd listener = listenOn(address, {}, "");
  Reception rank_0(std::move(listener), id.secret, 8);
  EXPECT_EQ(join(id, {.nranks = 2, .rank = 0, .where = stranger(address)}), "joined");
  *answer = join(id, other);
  std::this_thread::sleep_for(pause);
  for (const auto end = in(seconds(60)); std::chrono::steady_clock::now() < end;) {
    for (const Guest& guest : rank_0.attend()) {
      if (typeOf(guest.greeting) == MessageType::failed) return readFailed(payloadOf(guest.greeting)).what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "was told nothing";
}

TEST(Joining, AnotherVersionIsNamedToBoth) {
  std::string answer;
  const std::string error =
      errorOfRank0({.protocol_version = 99, .nranks = 2, .rank = 1, .where = stranger()}, &answer);
  EXPECT_EQ(error, answer);
  const std::string ours = "version " + std::to_string(kProtocolVersion);
  for (const std::string& words :
       {std::string("rank 1 (pid 4711)"), std::string("version 99"), std::string("rank 0 (pid "), ours}) {
    EXPECT_NE(error.find(words), std::string::npos) << words << " in: " << error;
  }
}

TEST(Joining, AnotherNumberOfRanksIsNamedToBoth) {
  std::string answer;
  const std::string error = errorOfRank0({.nranks = 3, .rank = 1, .where = stranger()}, &answer);
  EXPECT_EQ(error, answer);
  EXPECT_NE(error.find("rank 1 (pid 4711 on " + std::string(stranger().host.data()) +
                       ") says 3 ranks, rank 0 (pid "),
            std::string::npos)
      << error;
}

TEST(Joining, ARankJoinsOnce) {
  std::string answer;
  const std::string error = errorOfRank0({.nranks = 2, .rank = 0, .where = stranger()}, &answer);
  EXPECT_EQ(error, answer);
  EXPECT_NE(error.find("two processes or threads joined as rank 0: pid "), std::string::npos) << error;
}

TEST(Joining, WhoIsSlowToListenIsToldToo) {
  std::string answer;
  EXPECT_EQ(errorOfRank0({.nranks = 3, .rank = 1, .where = stranger()}, &answer, seconds(3)), answer);
}

/// The rendezvous has called with the reason, and ends before that is heard: which is no reason of its own.
TEST(Joining, TheReasonIsHeardThoughTheRendezvousIsGone) {
  Process::instance();  // starts libsodium
  UniqueId id{.address = parseNumericHost("127.0.0.1").value()};
  UniqueFd listener = listenOn(id.address, {}, "");
  Reception rendezvous(std::move(listener), id.secret, 8);
  std::string error;
  std::thread rank_1([&] {
    try {
      Bootstrap bootstrap(id, 2, 1, {}, in(seconds(60)));
    } catch (const Error& e) {
      error = e.what();
    }
  });
  JoinMessage join{.nranks = 0, .where = {}};
  while (join.nranks == 0) {
    for (Guest& guest : rendezvous.attend()) {
      std::memcpy(&join, payloadOf(guest.greeting).data(), sizeof(join));
      guest.channel.send(message(MessageType::joined));
      guest.channel.pump();
    }
    std::this_thread::yield();
  }
  Dial call({.to = join.where.address, .secret = id.secret, .deadline = in(seconds(60))});
  for (call.pump(); !call.established(); call.pump()) std::this_thread::yield();
  SecureChannel channel = call.take();
  rendezvous.takeListener();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // by then the rank has asked for it
  channel.send(failedMessage(Error(ncclSystemError, "the reason")));
  channel.pump();
  rank_1.join();
  EXPECT_EQ(error, "the reason");
}

/// An address that nobody listens on and that nobody else gets: as of a rank whose process has died.
class DeadAddress {
 public:
  DeadAddress() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress any_port = toSocketAddress(parseNumericHost("127.0.0.1").value());
    EXPECT_EQ(::bind(socket_.get(), any_port.get(), any_port.length), 0);
  }
  NetAddress get() const { return localAddress(socket_.get()); }

 private:
  UniqueFd socket_;
};

void expectRank17Named(const std::vector<std::string>& errors) {
  const std::string words = "rank 17 (pid 4711 on " + std::string(stranger().host.data()) +
                            ") left while the communicator was being made";
  for (const std::string& error : errors) EXPECT_EQ(error.find(words), 0U) << error;
}

TEST(Joining, ARankThatVanishesWhileOthersAreMissingIsNamed) {
  const DeadAddress dead;
  const UniqueId id = open();
  EXPECT_EQ(join(id, {.nranks = 19, .rank = 17, .where = stranger(dead.get())}), "joined");
  expectRank17Named(test::runThreads(1, [&](int) { Bootstrap bootstrap(id, 19, 0, {}, in(seconds(30))); }));
}

TEST(Joining, ARankThatVanishesBeforeItsParentCallsIsNamed) {
  const DeadAddress dead;
  const UniqueId id = open();
  EXPECT_EQ(join(id, {.nranks = 18, .rank = 17, .where = stranger(dead.get())}), "joined");
  expectRank17Named(test::runThreads(17, [&](int rank) {
    Bootstrap bootstrap(id, 18, rank, {}, in(seconds(30)));
    bootstrap.barrier();
  }));
}

TEST(Joining, ARankThatVanishesIsNamedThoughAnotherGotItsPort) {
  NetAddress reused = parseNumericHost("127.0.0.1").value();
  // Closed again; below the ports that the system gives to whoever asks for any.
  listenOn(reused, {static_cast<std::uint16_t>(20000 + ::getpid() % 5000), 30000}, "");
  const UniqueId id = open();
  EXPECT_EQ(join(id, {.nranks = 18, .rank = 17, .where = stranger(reused)}), "joined");
  expectRank17Named(test::runThreads(17, [&](int rank) {
    NetworkSettings network{};
    if (rank == 5) network.first_port = network.last_port = reused.port;
    Bootstrap bootstrap(id, 18, rank, network, in(seconds(30)));
    bootstrap.barrier();
  }));
}

}  // namespace
}  // namespace tutti
