// Which devices, addresses and attributes RDMA uses: judged from settings and tables, without a device.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/core/hca_rule.h"
#include "tests/transports/fake_verbs.h"
#include "transports/verbs/gids.h"
#include "transports/verbs/path_rules.h"
#include "transports/verbs/queue_pairs.h"
#include "tutti/error.h"

namespace tutti {
namespace {

struct HcaCase {
  const char* rule;
  const char* allowed;  ///< of the ports below, in order: y or n
};

TEST(HcaRule, NamesPrefixesPortsListsAndExclusions) {
  const std::vector<std::pair<std::string, int>> ports{
      {"mlx5_0", 1}, {"mlx5_0", 2}, {"mlx5_1", 1}, {"mlx5_10", 1}, {"rxe0", 1}};
  for (const HcaCase& test : {HcaCase{"", "yyyyy"},
                              {"mlx5", "yyyyn"},
                              {"mlx5_1", "nnyyn"},
                              {"=mlx5_1", "nnynn"},
                              {"mlx5_0:2", "nynnn"},
                              {"=mlx5_0:1,rxe0", "ynnny"},
                              {"^mlx5_1", "yynny"},
                              {"^=mlx5_1", "yynyy"},
                              {"=^mlx5_1", "yynyy"},
                              {"^mlx5_0:1,rxe", "nyyyn"},
                              {"mlx5_0,,rxe0,", "yynny"},
                              {"=mlx5", "nnnnn"},
                              {"^", "yyyyy"}}) {
    const HcaRule rule(test.rule);
    std::string allowed;
    for (const auto& [device, port] : ports) allowed += rule.allows(device, port) ? 'y' : 'n';
    EXPECT_EQ(allowed, test.allowed) << test.rule;
  }
}

TEST(HcaRule, ADeviceIsOpenedForAnyOfItsPorts) {
  EXPECT_TRUE(HcaRule("=mlx5_0:2").allowsSomeOf("mlx5_0"));
  EXPECT_TRUE(HcaRule("^mlx5_0:1").allowsSomeOf("mlx5_0"));
  EXPECT_FALSE(HcaRule("=mlx5_0:2").allowsSomeOf("mlx5_1"));
  EXPECT_FALSE(HcaRule("^mlx5_0").allowsSomeOf("mlx5_0"));
}

TEST(HcaRule, APortThatIsNoneIsRefused) {
  for (const char* text : {"mlx5_0:", "mlx5_0:x", "mlx5_0:1x", "=a,b:0", "^a:256", "a:-1", "a:1:2"}) {
    try {
      const HcaRule rule(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ncclInvalidUsage);
      EXPECT_NE(std::string(error.what()).find("NCCL_IB_HCA"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("1 to 255"), std::string::npos);
    }
  }
}

/// An entry as a table has it; IPv4 addresses are mapped.
Gid gid(int index, GidType type, const std::string& address) {
  Gid made{.index = static_cast<std::uint16_t>(index), .type = type};
  const std::string text = address.find(':') == std::string::npos ? "::ffff:" + address : address;
  EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), made.bytes.data()), 1) << text;
  return made;
}

constexpr auto kV1 = GidType::roce_v1;
constexpr auto kV2 = GidType::roce_v2;
constexpr auto kIb = GidType::infiniband;

/// The table of a usual RoCE port: link-local and IPv4, each twice.
std::vector<Gid> usual(const std::string& link_local, const std::string& ipv4) {
  return {gid(0, kV1, link_local), gid(1, kV2, link_local), gid(2, kV1, ipv4), gid(3, kV2, ipv4)};
}

std::string indices(const std::optional<GidPair>& pair) {
  return pair ? std::to_string(pair->mine.index) + "-" + std::to_string(pair->theirs.index) : "none";
}

TEST(Gids, RoceV2ByIpv4IsChosen) {
  const auto pair = chooseGids(usual("fe80::1", "10.0.0.1"), usual("fe80::2", "10.0.0.2"));
  EXPECT_EQ(indices(pair), "3-3");
  EXPECT_EQ(pair->why, "RoCE v2, IPv4, 30 bits in common");
}

TEST(Gids, TheSameSubnetBeforeAnother) {
  const std::vector mine{gid(0, kV2, "192.168.1.5"), gid(1, kV2, "10.1.0.5"), gid(2, kV2, "fd00:2::5")};
  EXPECT_EQ(indices(chooseGids(mine, std::vector{gid(7, kV2, "10.1.0.9"), gid(8, kV2, "172.16.0.9")})),
            "1-7");
  EXPECT_EQ(indices(chooseGids(mine, std::vector{gid(7, kV2, "192.168.1.9"), gid(8, kV2, "172.16.0.9")})),
            "0-7");
  EXPECT_EQ(indices(chooseGids(mine, std::vector{gid(8, kV2, "fd00:2::9")})), "2-8");
}

TEST(Gids, V1AndLinkLocalAreBetterThanNothing) {
  EXPECT_EQ(indices(chooseGids(std::vector{gid(0, kV1, "10.0.0.1"), gid(1, kV2, "10.0.0.1")},
                               std::vector{gid(0, kV1, "10.0.0.2")})),
            "0-0");
  const auto local =
      chooseGids(usual("fe80::1", "10.0.0.1"), std::vector{gid(4, kV2, "fe80::2"), gid(5, kV2, "fd00::2")});
  EXPECT_EQ(indices(local), "1-4");
  EXPECT_EQ(local->why.substr(0, 24), "RoCE v2, link-local IPv6");
  // Any address of version 2 before those of version 1.
  EXPECT_EQ(indices(chooseGids(std::vector{gid(0, kV1, "10.0.0.1"), gid(1, kV2, "fe80::1")},
                               std::vector{gid(0, kV1, "10.0.0.2"), gid(1, kV2, "fe80::2")})),
            "1-1");
}

TEST(Gids, WhatCannotTalkIsNotChosen) {
  EXPECT_EQ(indices(chooseGids(std::vector{gid(0, kV2, "10.0.0.1")}, std::vector{gid(0, kV1, "10.0.0.2")})),
            "none");
  EXPECT_EQ(indices(chooseGids(std::vector{gid(0, kV2, "10.0.0.1")}, std::vector{gid(0, kV2, "fd00::2")})),
            "none");
  EXPECT_EQ(indices(chooseGids(std::vector{gid(0, kV2, "fe80::1")}, std::vector{gid(0, kV2, "fd00::2")})),
            "none");
  EXPECT_EQ(indices(chooseGids({}, std::vector{gid(0, kV2, "10.0.0.2")})), "none");
}

TEST(Gids, InfiniBandHasSubnetsOfItsOwn) {
  const auto pair = chooseGids(std::vector{gid(0, kIb, "fe80::1")}, std::vector{gid(0, kIb, "fec0:1::2")});
  EXPECT_EQ(indices(pair), "0-0");
  EXPECT_EQ(pair->why, "InfiniBand");
}

RdmaSettings wish(int index, const std::string& family = "", const std::string& range = "") {
  RdmaSettings settings;
  settings.gid_index = index;
  settings.address_family = family;
  if (!range.empty()) settings.address_range = parseAddressRange(range).value();
  return settings;
}

std::string allowed(const std::vector<Gid>& all, const RdmaSettings& settings) {
  std::string text;
  for (const Gid& gid : allowedGids(all, gidRulesOf(settings))) text += std::to_string(gid.index);
  return text;
}

TEST(Gids, TheUsersRulesLimitTheOwnTable) {
  auto table = usual("fe80::1", "10.0.0.1");
  table.push_back(gid(4, kV2, "fd00::1"));
  EXPECT_EQ(allowed(table, wish(-1)), "34120") << "best first";
  EXPECT_EQ(allowed(table, wish(2)), "2");
  EXPECT_EQ(allowed(table, wish(9)), "");
  EXPECT_EQ(allowed(table, wish(-1, "AF_INET")), "32");
  EXPECT_EQ(allowed(table, wish(-1, "AF_INET6")), "410");
  EXPECT_EQ(allowed(table, wish(-1, "", "10.0.0.0/24")), "32");
  EXPECT_EQ(allowed(table, wish(-1, "", "10.0.1.0/24")), "");
  EXPECT_EQ(allowed(table, wish(-1, "", "10.0.0.1")), "32");
  EXPECT_EQ(allowed(table, wish(-1, "", "fd00::/8")), "4");
  EXPECT_EQ(allowed(table, wish(-1, "AF_INET6", "10.0.0.0/8")), "");
  EXPECT_EQ(allowed(table, wish(0, "AF_INET")), "0") << "the index says it all";
}

TEST(Paths, TheSmallerPacketSizeOfBothPorts) {
  EXPECT_EQ(commonMtu(IBV_MTU_4096, IBV_MTU_1024), IBV_MTU_1024);
  EXPECT_EQ(commonMtu(IBV_MTU_512, IBV_MTU_4096), IBV_MTU_512);
  EXPECT_EQ(commonMtu(IBV_MTU_2048, IBV_MTU_2048), IBV_MTU_2048);
  EXPECT_FALSE(commonMtu(IBV_MTU_4096, 0));
  EXPECT_FALSE(commonMtu(IBV_MTU_4096, 6));
}

TEST(Paths, GlobalHeadersBetweenSubnets) {
  const Gid one = gid(0, kIb, "fe80::1");
  const Gid same = gid(0, kIb, "fe80::2");
  const Gid other = gid(0, kIb, "fe80:0:0:1::2");
  EXPECT_FALSE(needsGlobalHeader(false, false, one, same));
  EXPECT_TRUE(needsGlobalHeader(false, false, one, other));
  EXPECT_TRUE(needsGlobalHeader(false, true, one, same));
  EXPECT_TRUE(needsGlobalHeader(true, false, one, same));
}

TEST(Paths, PartitionsAndTheirMembers) {
  EXPECT_EQ(whyNotOnePartition(0xffff, 0xffff), "");
  EXPECT_EQ(whyNotOnePartition(0x8001, 0x0001), "");
  EXPECT_EQ(whyNotOnePartition(0x0001, 0x8001), "");
  EXPECT_NE(whyNotOnePartition(0x0001, 0x0001).find("both ports are limited members of partition 0x0001"),
            std::string::npos);
  EXPECT_NE(whyNotOnePartition(0x8001, 0xffff).find("0x8001 here, 0xffff there"), std::string::npos);
}

/// What queue pairs are given on their way to their peers.
class Connections : public testing::Test {
 protected:
  std::vector<test::FakeDevice::Change> connect(const VerbsPort& port, const Gid& mine, const Gid& theirs,
                                                const QueuePairAddress& more = {}) {
    QueuePairAddress remote = more;
    remote.gid = theirs;
    remote.lid = 99;
    remote.numbers[0] = 1234;
    remote.partition = 0xffff;
    if (remote.mtu == 0) remote.mtu = IBV_MTU_2048;
    fake_.gids = {mine};
    QueuePairs pairs(port, 1, {.sends = 4, .receives = 4}, settings_);
    pairs.connect(mine, remote, settings_);
    return fake_.changes;
  }

  VerbsPort port(bool is_ethernet = true) {
    fake_.is_ethernet = is_ethernet;
    return fake_.port(3);
  }

  test::FakeDevice& fake_ = test::Fabric::fresh().add("fake");
  RdmaSettings settings_ = [] {
    RdmaSettings settings;
    settings.timeout = 21;
    settings.retry_count = 5;
    settings.service_level = 6;
    settings.traffic_class = 106;
    settings.pkey_index = 2;
    return settings;
  }();
};

TEST_F(Connections, SettingsAndAddressesReachTheDevice) {
  const auto changes = connect(port(), gid(7, kV2, "10.0.0.1"), gid(9, kV2, "10.0.0.2"));
  ASSERT_EQ(changes.size(), 3U);
  const ibv_qp_attr& init = changes[0].attributes;
  EXPECT_EQ(init.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init.pkey_index, 2);
  EXPECT_EQ(init.port_num, 3);
  const ibv_qp_attr& receive = changes[1].attributes;
  EXPECT_EQ(receive.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(receive.path_mtu, IBV_MTU_2048) << "the port's own is 4096";
  EXPECT_EQ(receive.dest_qp_num, 1234U);
  EXPECT_EQ(receive.ah_attr.sl, 6);
  EXPECT_EQ(receive.ah_attr.is_global, 1);
  EXPECT_EQ(receive.ah_attr.grh.sgid_index, 7);
  EXPECT_EQ(receive.ah_attr.grh.traffic_class, 106);
  EXPECT_EQ(receive.ah_attr.grh.dgid.raw[15], 2);
  const ibv_qp_attr& send = changes[2].attributes;
  EXPECT_EQ(send.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(send.timeout, 21);
  EXPECT_EQ(send.retry_cnt, 5);
  EXPECT_NE(changes[2].mask & IBV_QP_TIMEOUT, 0);
  EXPECT_NE(changes[2].mask & IBV_QP_RETRY_CNT, 0);
}

TEST_F(Connections, InfiniBandGoesByLidInsideASubnet) {
  const auto changes = connect(port(false), gid(0, kIb, "fe80::1"), gid(0, kIb, "fe80::2"));
  EXPECT_EQ(changes.at(1).attributes.ah_attr.dlid, 99);
  EXPECT_EQ(changes.at(1).attributes.ah_attr.is_global, 0);
}

TEST_F(Connections, InfiniBandGoesByGidBetweenSubnets) {
  const auto changes = connect(port(false), gid(0, kIb, "fe80::1"), gid(0, kIb, "fec0::2"));
  EXPECT_EQ(changes.at(1).attributes.ah_attr.is_global, 1);
}

TEST_F(Connections, OtherPartitionsAndSizesAreRefused) {
  VerbsPort other = port();
  EXPECT_THROW(connect(other, gid(0, kV2, "10.0.0.1"), gid(0, kV2, "10.0.0.2"), {.mtu = 9}), Error);
  other.partition = 0x8001;
  EXPECT_THROW(connect(other, gid(0, kV2, "10.0.0.1"), gid(0, kV2, "10.0.0.2")), Error);
  for (const auto& change : fake_.changes) EXPECT_EQ(change.attributes.qp_state, IBV_QPS_INIT);
}

}  // namespace
}  // namespace tutti
