// The namespaces that other tests rely on: hosts of their own, that reach each other, over links that are as
// slow and as bad as they were asked to be.
#include "tests/harness/namespaces.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace tutti::test {
namespace {

using namespace std::chrono_literals;

sockaddr_in addressOf(int index, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, Namespaces::address(index).c_str(), &address.sin_addr);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

/// A socket of `index` that is bound to a port of the kernel's choice.
struct Bound {
  Bound(const Namespaces& hosts, int index, int type) : socket(hosts.openSocket(index, AF_INET, type)) {
    sockaddr_in address = addressOf(index, 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket.get(), generic(address), size), 0);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    timeval patience{};
    patience.tv_sec = 10;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  UniqueFd socket;
  int port = 0;
};

/// Listens in namespace 0, connects from namespace 1.
struct Connection {
  explicit Connection(const Namespaces& hosts) : client(hosts.openSocket(1, AF_INET, SOCK_STREAM)) {
    const Bound listener(hosts, 0, SOCK_STREAM);
    EXPECT_EQ(::listen(listener.socket.get(), 1), 0);
    const sockaddr_in address = addressOf(0, listener.port);
    EXPECT_EQ(::connect(client.get(), generic(address), sizeof(address)), 0) << errno;
    server = UniqueFd(::accept(listener.socket.get(), nullptr, nullptr));
    EXPECT_TRUE(server);
  }
  UniqueFd client;
  UniqueFd server;
};

/// Seconds for `bytes` from the client to the server.
double secondsFor(const Connection& connection, std::size_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  std::thread sender([&] {
    const std::vector<char> data(bytes, 'x');
    EXPECT_EQ(::send(connection.client.get(), data.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  });
  std::vector<char> received(bytes);
  EXPECT_EQ(::recv(connection.server.get(), received.data(), bytes, MSG_WAITALL),
            static_cast<ssize_t>(bytes));
  sender.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of `count` datagrams from namespace 1, how many arrive at namespace 0. What is under way at once fits into
/// the queues on the way, whoever has the processor meanwhile.
int arriving(const Namespaces& hosts, int count) {
  const Bound receiver(hosts, 0, SOCK_DGRAM);
  const UniqueFd sender = hosts.openSocket(1, AF_INET, SOCK_DGRAM);
  const sockaddr_in address = addressOf(0, receiver.port);
  int arrived = 0;
  std::array<char, 8> byte{};
  // Until all that were sent are there, or none has come for a while.
  const auto receive = [&](int sent, std::chrono::milliseconds silence) {
    auto last = std::chrono::steady_clock::now();
    while (arrived < sent && std::chrono::steady_clock::now() - last < silence) {
      if (::recv(receiver.socket.get(), byte.data(), byte.size(), MSG_DONTWAIT) > 0) {
        ++arrived;
        last = std::chrono::steady_clock::now();
      } else {
        std::this_thread::sleep_for(100us);
      }
    }
  };
  for (int i = 1; i <= count; ++i) {
    ::sendto(sender.get(), byte.data(), 1, 0, generic(address), sizeof(address));
    if (i % 100 == 0) receive(i, 20ms);
  }
  receive(count, 1s);
  return arrived;
}

/// Ended within ten seconds; nobody may be there to reap it.
bool isGone(int pid) {
  for (int look = 0; look < 1000; ++look) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(status, line) || line.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

std::size_t namespacesOf(const std::string& part) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns")) {
    if (entry.path().filename().string().find(part) != std::string::npos) ++count;
  }
  return count;
}

TEST_F(NamespaceTest, TwoProcessesTalkOverTcp) {
  const Namespaces hosts(3);
  const Bound listener(hosts, 2, SOCK_STREAM);
  ASSERT_EQ(::listen(listener.socket.get(), 1), 0);
  const auto client = hosts.start(
      0,
      {"bash", "-c",
       "exec 3<>/dev/tcp/$ADDRESS/$PORT; echo hello >&3; read -r answer <&3; echo \"got $answer\""},
      {{"ADDRESS", Namespaces::address(2)}, {"PORT", std::to_string(listener.port)}});
  sockaddr_in from{};
  socklen_t size = sizeof(from);
  const UniqueFd server(::accept(listener.socket.get(), reinterpret_cast<sockaddr*>(&from), &size));
  ASSERT_TRUE(server);
  EXPECT_EQ(from.sin_addr.s_addr, addressOf(0, 0).sin_addr.s_addr);
  std::string line(6, ' ');
  EXPECT_EQ(::recv(server.get(), line.data(), line.size(), MSG_WAITALL), 6);
  EXPECT_EQ(line, "hello\n");
  EXPECT_EQ(::send(server.get(), "there\n", 6, MSG_NOSIGNAL), 6);
  const CommandResult result = client->wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "got there\n");
}

TEST_F(NamespaceTest, EachHasItsOwnNetworkAndThisProcessKeepsItsOwn) {
  const Namespaces hosts(2);
  const auto own = std::filesystem::read_symlink("/proc/self/ns/net");
  EXPECT_TRUE(hosts.openSocket(1, AF_INET, SOCK_STREAM));
  EXPECT_EQ(std::filesystem::read_symlink("/proc/thread-self/ns/net"), own);
  const auto first = hosts.run(0, {"readlink", "/proc/self/ns/net"});
  const auto second = hosts.run(1, {"readlink", "/proc/self/ns/net"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out, second.out);
  EXPECT_NE(first.out, own.string() + "\n");
}

TEST_F(NamespaceTest, ARateIsKept) {
  Namespaces hosts(2);
  const Connection connection(hosts);
  constexpr std::size_t kBytes = 2000000;
  secondsFor(connection, kBytes);
  hosts.setRate(1, 20000000);
  // 16 Mbit, of which 0.5 Mbit pass at once.
  EXPECT_GT(secondsFor(connection, kBytes), 0.6);
  hosts.setRate(1, 0);
  EXPECT_FALSE(runCommand({"tc", "-n", hosts.name(1), "qdisc"}).out.find("tbf") != std::string::npos);
}

TEST_F(NamespaceTest, LossIsAsAskedFor) {
  Namespaces hosts(2);
  constexpr int kCount = 2000;
  EXPECT_EQ(arriving(hosts, kCount), kCount);
  hosts.setLoss(0, 0.25);
  // 1500 are expected, with a standard deviation of 19.4: ten of them.
  EXPECT_NEAR(arriving(hosts, kCount), 1500, 194);
  hosts.setLoss(0, 0);
  EXPECT_EQ(arriving(hosts, kCount), kCount);
}

TEST_F(NamespaceTest, ConnectionsSurviveLossAndAPulledCable) {
  Namespaces hosts(2);
  const Connection connection(hosts);
  hosts.setLoss(0, 0.1);
  secondsFor(connection, 100000);
  hosts.setLoss(0, 0);
  hosts.setConnected(1, false);
  EXPECT_EQ(arriving(hosts, 10), 0);
  hosts.setConnected(1, true);
  secondsFor(connection, 1000);
}

TEST_F(NamespaceTest, ABlockedPeerIsTheOnlyOne) {
  Namespaces hosts(3);
  hosts.setLoss(0, 0);
  hosts.setBlocked(0, 1, true);
  EXPECT_EQ(arriving(hosts, 10), 0);
  hosts.setBlocked(0, 1, false);
  EXPECT_EQ(arriving(hosts, 10), 10);
  hosts.setBlocked(0, 2, true);
  EXPECT_EQ(arriving(hosts, 10), 10);
}

TEST_F(NamespaceTest, AProgramThatHangsIsKilledAtItsDeadline) {
  const Namespaces hosts(1);
  const CommandResult result = hosts.run(0, {"sleep", "1000"}, {}, 100ms);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
}

TEST_F(NamespaceTest, NothingIsLeftBehind) {
  const std::string own = "tutti-test-" + std::to_string(::getpid()) + "-";
  int sleeper = 0;
  {
    const Namespaces hosts(2);
    EXPECT_EQ(namespacesOf(own), 3U);
    // It has left the process group that is killed with its starter by the time that this ends.
    const CommandResult result =
        hosts.run(1, {"sh", "-c", "pid=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); echo $pid"});
    sleeper = std::stoi(result.out);
    EXPECT_TRUE(std::filesystem::exists("/proc/" + std::to_string(sleeper)));
  }
  EXPECT_EQ(namespacesOf(own), 0U);
  EXPECT_TRUE(isGone(sleeper));
}

TEST_F(NamespaceTest, WhatAKilledTestLeftIsRemoved) {
  const CommandResult dead = runCommand({"sh", "-c", "echo $$"});
  const std::string left = "tutti-test-" + std::to_string(std::stoi(dead.out)) + "-0-0";
  ASSERT_EQ(runCommand({"ip", "netns", "add", left}).exit_code, 0);
  const Namespaces hosts(1);
  EXPECT_EQ(namespacesOf(left), 0U);
}

TEST_F(NamespaceTest, AFailureIsToldInTheToolsWords) {
  Namespaces hosts(1);
  try {
    hosts.setLoss(0, 7);
    FAIL();
  } catch (const std::runtime_error& error) {
    const std::string words = error.what();
    EXPECT_NE(words.find("--probability 7"), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace tutti::test
