// Addresses as text, the choice of an interface, and ports to listen on.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "transports/interfaces.h"
#include "transports/listener.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Family = NetAddress::Family;

NetAddress at(const std::string& host, std::uint16_t port = 0) {
  NetAddress address = parseNumericHost(host).value();
  address.port = port;
  return address;
}

/// What `action` throws: code and text.
template <class Action>
std::string errorOf(ncclResult_t code, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(SocketAddress, TextAndBytesAgree) {
  const NetAddress v4 = at("10.1.2.3", 4711);
  EXPECT_EQ(v4.family, Family::ipv4);
  EXPECT_EQ((std::vector<int>{v4.bytes[0], v4.bytes[1], v4.bytes[2], v4.bytes[3]}),
            (std::vector<int>{10, 1, 2, 3}));
  EXPECT_EQ(toText(v4), "10.1.2.3:4711");
  const NetAddress v6 = at("fd00::5", 80);
  EXPECT_EQ(v6.family, Family::ipv6);
  EXPECT_EQ(v6.bytes[0], 0xfd);
  EXPECT_EQ(v6.bytes[15], 5);
  EXPECT_EQ(toText(v6), "[fd00::5]:80");
  EXPECT_EQ(hostText(at("fe80::1%lo")), "fe80::1%lo");
  EXPECT_EQ(toText(NetAddress{}), "(no address):0");
}

TEST(SocketAddress, SurvivesTheWayThroughASocketAddress) {
  for (const char* host : {"127.0.0.1", "255.1.2.3", "::1", "fd00:1:2:3:4:5:6:7", "fe80::1%lo"}) {
    const NetAddress address = at(host, 65535);
    const SocketAddress socket = toSocketAddress(address);
    EXPECT_EQ(toNetAddress(socket.get()), address) << host;
    EXPECT_EQ(socket.length, address.family == Family::ipv4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  EXPECT_EQ(toNetAddress(nullptr), NetAddress{});
}

TEST(SocketAddress, GarbageIsNoHost) {
  for (const char* text :
       {"", "10.1", "10.0.0.256", "host", "fd00::5::", "10.0.0.1 ", "[::1]", "1.2.3.4.5"}) {
    EXPECT_EQ(parseNumericHost(text), std::nullopt) << text;
  }
}

TEST(SocketAddress, HostAndPortAreRead) {
  const auto read = [](const char* text) { return parseHostAndPort(text, "NCCL_COMM_ID"); };
  EXPECT_EQ(read("node7:4711").host, "node7");
  EXPECT_EQ(read("node7:4711").port, 4711);
  EXPECT_EQ(read("10.0.0.5:1").host, "10.0.0.5");
  EXPECT_EQ(read("[fd00::5]:65535").host, "fd00::5");
  EXPECT_EQ(read("[fe80::1%eth0]:7").host, "fe80::1%eth0");
  for (const char* text : {"", ":", "node7", "node7:", ":4711", "node7:0", "node7:65536", "node7:47x",
                           "node7:-1", "fd00::5:4711", "[fd00::5]", "[]:5", "[fd00::5:4711"}) {
    const std::string words = errorOf(ncclInvalidUsage, [&] { read(text); });
    EXPECT_NE(words.find("NCCL_COMM_ID=\"" + std::string(text) + "\""), std::string::npos) << words;
  }
}

TEST(SocketAddress, NamesAreResolved) {
  const NetAddress address = resolve({.host = "localhost", .port = 9}, AF_INET, "MASTER_ADDR");
  EXPECT_EQ(toText(address), "127.0.0.1:9");
  EXPECT_EQ(toText(resolve({.host = "::1", .port = 9}, AF_UNSPEC, "MASTER_ADDR")), "[::1]:9");
  // NCCL_SOCKET_FAMILY is for names.
  EXPECT_EQ(toText(resolve({.host = "10.1.2.3", .port = 9}, AF_INET6, "MASTER_ADDR")), "10.1.2.3:9");
  const std::string words = errorOf(
      ncclSystemError, [] { resolve({.host = "no.such.host.invalid", .port = 9}, AF_INET, "MASTER_ADDR"); });
  EXPECT_NE(words.find("MASTER_ADDR: the address of \"no.such.host.invalid\" for IPv4"), std::string::npos)
      << words;
}

TEST(SocketAddress, KindsAreKnown) {
  EXPECT_TRUE(isLoopback(at("127.0.0.1")) && isLoopback(at("127.0.1.1")) && isLoopback(at("::1")));
  EXPECT_FALSE(isLoopback(at("128.0.0.1")) || isLoopback(at("::2")) || isLoopback(NetAddress{}));
  EXPECT_TRUE(isLinkLocal(at("169.254.3.4")) && isLinkLocal(at("fe80::1")) && isLinkLocal(at("febf::1")));
  EXPECT_FALSE(isLinkLocal(at("169.253.3.4")) || isLinkLocal(at("fec0::1")) || isLinkLocal(at("fd00::1")));
}

/// A host as many are.
std::vector<Interface> host() {
  return {{"lo", at("127.0.0.1")},         {"lo", at("::1")},          {"docker0", at("172.17.0.1")},
          {"veth12", at("169.254.1.1")},   {"eth1", at("fe80::1%lo")}, {"eth1", at("10.1.0.5")},
          {"eth10", at("10.10.0.5")},      {"eth0", at("fd00::5")},    {"eth0", at("10.0.0.5")},
          {"eth2", at("10.2.0.5"), false}, {"ib0", at("192.168.7.5")}, {"br-1f2e", at("172.18.0.1")}};
}

struct ChoiceCase {
  const char* interfaces;
  const char* family;
  std::vector<std::string> usable;  ///< "name address", best first
};

void PrintTo(const ChoiceCase& choice, std::ostream* out) {
  *out << '"' << choice.interfaces << "\" " << choice.family;
}

class Choice : public testing::TestWithParam<ChoiceCase> {};

TEST_P(Choice, IsAsDescribed) {
  NetworkSettings settings{};
  settings.interfaces = GetParam().interfaces;
  settings.family = GetParam().family;
  const InterfaceChoice choice = chooseInterfaces(host(), settings);
  std::vector<std::string> usable;
  for (const Interface& interface : choice.usable)
    usable.push_back(interface.name + " " + hostText(interface.address));
  EXPECT_EQ(usable, GetParam().usable);
  EXPECT_EQ(choice.reasons.size(), host().size());
  EXPECT_EQ(choice.reasons.front(), usable.front() + ": chosen");
}

INSTANTIATE_TEST_SUITE_P(
    All, Choice,
    testing::Values(
        ChoiceCase{"",
                   "",
                   {"eth1 10.1.0.5", "eth10 10.10.0.5", "eth0 10.0.0.5", "ib0 192.168.7.5", "eth0 fd00::5",
                    "eth1 fe80::1%lo", "lo 127.0.0.1", "lo ::1"}},
        ChoiceCase{"", "AF_INET6", {"eth0 fd00::5", "eth1 fe80::1%lo", "lo ::1"}},
        // A name that exists is that interface, and not eth10 too; one that does not is a prefix.
        ChoiceCase{"eth1", "", {"eth1 10.1.0.5", "eth1 fe80::1%lo"}},
        ChoiceCase{"eth", "AF_INET", {"eth1 10.1.0.5", "eth10 10.10.0.5", "eth0 10.0.0.5"}},
        ChoiceCase{"=eth1", "AF_INET", {"eth1 10.1.0.5"}},
        // In the order of the list.
        ChoiceCase{"ib,eth0", "", {"ib0 192.168.7.5", "eth0 10.0.0.5", "eth0 fd00::5"}},
        ChoiceCase{",eth0,,", "AF_INET", {"eth0 10.0.0.5"}},
        ChoiceCase{"=eth,eth0", "AF_INET", {"eth0 10.0.0.5"}},
        // What is named is taken, whatever it is.
        ChoiceCase{"docker0", "", {"docker0 172.17.0.1"}}, ChoiceCase{"lo", "AF_INET6", {"lo ::1"}},
        ChoiceCase{"^eth", "", {"ib0 192.168.7.5", "lo 127.0.0.1", "lo ::1"}},
        ChoiceCase{"^eth1,ib", "AF_INET", {"eth10 10.10.0.5", "eth0 10.0.0.5", "lo 127.0.0.1"}},
        ChoiceCase{
            "^=eth,lo", "AF_INET", {"eth1 10.1.0.5", "eth10 10.10.0.5", "eth0 10.0.0.5", "ib0 192.168.7.5"}},
        ChoiceCase{"10.0.0.0/15", "", {"eth1 10.1.0.5", "eth0 10.0.0.5"}},
        ChoiceCase{"192.168.0.0/16,10.10.0.5/32", "", {"ib0 192.168.7.5", "eth10 10.10.0.5"}},
        ChoiceCase{"fd00::/8", "", {"eth0 fd00::5"}},
        ChoiceCase{"^10.0.0.0/8,lo", "AF_INET", {"ib0 192.168.7.5"}},
        ChoiceCase{"0.0.0.0/0",
                   "AF_INET",
                   {"eth1 10.1.0.5", "eth10 10.10.0.5", "eth0 10.0.0.5", "ib0 192.168.7.5",
                    "docker0 172.17.0.1", "br-1f2e 172.18.0.1", "veth12 169.254.1.1", "lo 127.0.0.1"}}));

TEST(Interfaces, ReasonsAreGiven) {
  const auto reasons = chooseInterfaces(host(), NetworkSettings{}).reasons;
  const auto says = [&](const std::string& line) {
    return std::ranges::find(reasons, line) != reasons.end();
  };
  EXPECT_TRUE(says("docker0 172.17.0.1: a bridge of containers, taken only when named"));
  EXPECT_TRUE(says("eth2 10.2.0.5: down"));
  EXPECT_TRUE(says("eth0 10.0.0.5: usable, another comes first"));
}

TEST(Interfaces, NothingLeftIsAnErrorThatListsThem) {
  NetworkSettings settings{};
  settings.interfaces = "eth2,wlan";
  const std::string words = errorOf(ncclInvalidUsage, [&] { chooseInterfaces(host(), settings); });
  EXPECT_NE(words.find("NCCL_SOCKET_IFNAME=\"eth2,wlan\""), std::string::npos) << words;
  EXPECT_NE(words.find("eth2 10.2.0.5: down"), std::string::npos) << words;
  EXPECT_NE(words.find("ib0 192.168.7.5: not named by NCCL_SOCKET_IFNAME"), std::string::npos) << words;
  EXPECT_EQ(words.find("NCCL_SOCKET_FAMILY"), std::string::npos) << words;
}

TEST(Interfaces, NothingLeftIsAnErrorThatSaysWhatToDo) {
  const auto remedyOf = [](const std::vector<Interface>& all, const NetworkSettings& settings) {
    const std::string words = errorOf(ncclInvalidUsage, [&] { chooseInterfaces(all, settings); });
    return words.substr(words.rfind(". ") + 2);
  };
  const std::vector<Interface> all{{"eth0", at("10.0.0.5"), true},
                                   {"eth0", at("10.0.0.6"), true},
                                   {"lo", at("127.0.0.1"), true},
                                   {"eth1", at("10.1.0.5"), false}};
  NetworkSettings settings{};
  settings.interfaces = "foo";
  EXPECT_EQ(remedyOf(all, settings), "Name one of eth0, lo in NCCL_SOCKET_IFNAME, or unset it");
  settings.interfaces = "";
  settings.family = "AF_INET6";
  EXPECT_EQ(remedyOf(all, settings), "Unset NCCL_SOCKET_FAMILY, or give an interface such an address");
  settings.family = "";
  EXPECT_EQ(remedyOf({{"docker0", at("172.17.0.1"), true}}, settings),
            "Name one of docker0 in NCCL_SOCKET_IFNAME");
  EXPECT_EQ(remedyOf({all[3]}, settings), "Bring one up (ip link set NAME up)");
}

TEST(Interfaces, WrongNetworksAreRefused) {
  for (const char* network : {"10.0.0.0/33", "10.0/8", "10.0.0.0/", "10.0.0.0/x", "fd00::/129", "eth0/8"}) {
    NetworkSettings settings{};
    settings.interfaces = network;
    const std::string words = errorOf(ncclInvalidUsage, [&] { chooseInterfaces(host(), settings); });
    EXPECT_NE(words.find("is not a network"), std::string::npos) << words;
  }
}

TEST(Interfaces, ThisHostHasLoopback) {
  const auto here = interfacesHere();
  EXPECT_TRUE(
      std::ranges::any_of(here, [](const Interface& interface) { return isLoopback(interface.address); }));
}

TEST(Listener, TakesTheFirstFreePortOfARange) {
  NetAddress any_port = at("127.0.0.1");
  const UniqueFd taken = listenOn(any_port, {}, "");
  const PortRange range{any_port.port, static_cast<std::uint16_t>(any_port.port + 20)};
  NetAddress next = at("127.0.0.1");
  const UniqueFd second = listenOn(next, range, "");
  EXPECT_GT(next.port, range.first);
  EXPECT_LE(next.port, range.last);
  NetAddress none = at("127.0.0.1");
  const std::string words = errorOf(ncclSystemError, [&] {
    listenOn(none, {any_port.port, any_port.port}, "");
  });
  EXPECT_NE(words.find("any port from " + std::to_string(any_port.port)), std::string::npos) << words;
  EXPECT_NE(words.find("widen the range"), std::string::npos) << words;
}

TEST(Listener, APortOfTheAddressGoesBeforeTheRange) {
  NetAddress free_port = at("127.0.0.1");
  listenOn(free_port, {}, "");  // closed again
  NetAddress address = free_port;
  const UniqueFd listener = listenOn(address, {1, 2}, "TUTTI_BOOTSTRAP_PORT");
  EXPECT_EQ(address, free_port);
  EXPECT_EQ(localAddress(listener.get()), free_port);
}

}  // namespace
}  // namespace tutti
