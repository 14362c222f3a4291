// What tutti-topo says of planted faults, and of planted differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/topology/builders.h"
#include "tools/topo/assumed_nvlinks.h"
#include "tools/topo/check.h"
#include "tools/topo/compare.h"
#include "tools/topo/machine.h"

namespace tutti::topo {
namespace {

TopologyNode& nodeOf(Topology& topology, TopologyKind kind, std::size_t place) {
  return topology.nodes[static_cast<std::size_t>(topology.all(kind).at(place))];
}

Findings checked(Topology topology) {
  std::vector<NamedHost> hosts;
  hosts.push_back({"node0", std::move(topology)});
  return checkMachine(makeMachine(std::move(hosts)), {});
}

/// "check: seen" of the warnings.
std::vector<std::string> warnings(const Findings& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings) {
    if (finding.level != Level::warning) continue;
    lines.push_back(finding.check + ": " + finding.seen);
    EXPECT_NE(finding.todo, "") << finding.check;
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(TopoCheck, FindsNothingWrongWithAGoodHost) { EXPECT_EQ(warnings(checked(test::dgxLike())), Lines{}); }

TEST(TopoCheck, SeesALinkTrainedBelowWhatItCouldDo) {
  Topology host = test::dgxLike();
  TopologyNode& gpu = nodeOf(host, TopologyKind::gpu, 3);
  gpu.link = {.gtransfers_per_s = 16, .width = 8, .most_gtransfers_per_s = 16, .most_width = 16};
  EXPECT_EQ(warnings(checked(host)),
            Lines{"PCI link of GPU 3: 0000:08:00.0 runs at 16 GT/s x8, could do 16 GT/s x16"});
}

TEST(TopoCheck, SeesALinkNarrowerThanThoseOfItsModelWhereNoMaximumIsKnown) {
  Topology host = test::dgxLike();
  nodeOf(host, TopologyKind::gpu, 3).link.gtransfers_per_s = 8;
  EXPECT_EQ(warnings(checked(host)),
            Lines{"PCI link of GPU 3: 0000:08:00.0 has 8 GT/s x16 (12 GB/s), others of its model 24 GB/s"});
  nodeOf(host, TopologyKind::gpu, 3).pci.device = 0x1234;
  EXPECT_EQ(warnings(checked(host)), Lines{}) << "another model may be slower";
}

TEST(TopoCheck, SeesASwitchWhoseWayToTheCpuIsNarrowerThanThatOfOthers) {
  Topology host = test::dgxLike();
  nodeOf(host, TopologyKind::pci_bridge, 2).link.width = 8;
  EXPECT_EQ(warnings(checked(host)),
            Lines{"PCI link of PCI switch 0000:0b:00.0: 0000:0b:00.0 has 16 GT/s x8 (12 GB/s), others of its "
                  "model 24 GB/s"});
}

TEST(TopoCheck, JudgesNothingByPlacesThatWereGuessed) {
  const auto places = [](const Topology& host) {
    Lines found = warnings(checked(host));
    std::erase_if(found, [](const std::string& line) { return !line.starts_with("place of"); });
    return found.size();
  };
  Topology host = test::pcieOnly4();  // GPUs 2 and 3 are on the other socket
  EXPECT_EQ(places(host), 2U);
  nodeOf(host, TopologyKind::gpu, 3).is_guessed = true;
  EXPECT_EQ(places(host), 1U) << "GPU 2 was told, and so was the NIC";
  for (TopologyNode& node : host.nodes) node.is_guessed = node.kind != TopologyKind::numa_node;
  EXPECT_EQ(places(host), 0U);
}

TEST(TopoCheck, SeesASlowPort) {
  Topology host = test::dgxLike();
  nodeOf(host, TopologyKind::net, 2).net.mbits_per_s = 100000;
  const Lines lines = warnings(checked(host));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(), "port mlx5_2:1: 100 Gb/s, others 200 Gb/s");
}

TEST(TopoCheck, SeesAPortThatItsPciLinkHoldsBack) {
  Topology host = test::dgxLike();
  for (const int nic : host.all(TopologyKind::nic))
    host.nodes[static_cast<std::size_t>(nic)].link = test::kGen3x16;
  const Lines lines = warnings(checked(host));
  ASSERT_EQ(lines.size(), 8);
  EXPECT_EQ(lines.front(), "port mlx5_0:1: 200 Gb/s are 25 GB/s, its PCI link gives 12 GB/s");
}

TEST(TopoCheck, SeesANicFarFromEveryGpuAndGpusFarFromEveryNic) {
  test::HostBuilder builder;
  const int first = builder.numaNode("GenuineIntel", 6, 85);
  builder.gpu(first, test::kGen3x16, 75);
  const int second = builder.numaNode("GenuineIntel", 6, 85);
  builder.nic(second, test::kGen3x16, 100000);
  EXPECT_EQ(warnings(checked(builder.topology)), (Lines{"place of mlx5_0:1: every GPU is on another NUMA "
                                                        "node: what it carries passes the link between them",
                                                        "place of GPU 0: no NIC is on its NUMA node"}));
}

TEST(TopoCheck, TellsNobodyToMoveAnInterfaceThatIsNoCard) {
  test::HostBuilder builder;
  builder.numaNode("GenuineIntel", 6, 85);
  const int second = builder.numaNode("GenuineIntel", 6, 85);
  builder.gpu(second, test::kGen3x16, 75);
  builder.topology.nodes.push_back({.kind = TopologyKind::nic, .parent = 0});
  const int card = static_cast<int>(builder.topology.nodes.size()) - 1;
  builder.topology.nodes.push_back({.kind = TopologyKind::net, .parent = card, .net = {.name = "veth0"}});
  EXPECT_EQ(warnings(checked(builder.topology)), Lines{});
}

TEST(TopoCheck, RemindsOfNvlinksThatFilesLeaveOut) {
  Topology host = test::dgxLike();
  const auto reminds = [](const Topology& topology) {
    return std::ranges::any_of(checked(topology), [](const Finding& finding) {
      return finding.level == Level::note && finding.seen.starts_with("none is known of 8 GPUs");
    });
  };
  EXPECT_FALSE(reminds(host));
  host.nvlinks.clear();
  EXPECT_TRUE(reminds(host));
}

TEST(TopoCheck, SeesTooFewAndUnevenRails) {
  test::HostBuilder builder;
  const int numa = builder.numaNode("AuthenticAMD", 23, 49);
  for (int i = 0; i < 8; ++i) builder.gpu(numa, test::kGen4x16, 80);
  for (int i = 0; i < 3; ++i) builder.nic(numa, test::kGen4x16, 100000);
  EXPECT_EQ(warnings(checked(builder.topology)), Lines{"rails: 3 ports for 8 GPUs: more than two share one"});
  for (int i = 0; i < 2; ++i) builder.nic(numa, test::kGen4x16, 100000);
  EXPECT_EQ(warnings(checked(builder.topology)),
            Lines{"rails: 5 ports for 8 GPUs: some carry more than others"});
}

TEST(TopoCheck, DoesNotCountAManagementPortAsARail) {
  Topology host = test::dgxLike();
  TopologyNode card{.kind = TopologyKind::nic, .parent = 0, .bus_id = "0000:f0:00.0"};
  TopologyNode port{.kind = TopologyKind::net, .parent = static_cast<int>(host.nodes.size())};
  port.net = {.name = "eth0", .device = 8, .mbits_per_s = 1000};
  host.nodes.push_back(card);
  host.nodes.push_back(port);
  EXPECT_EQ(warnings(checked(host)), Lines{});
}

TEST(TopoCheck, SeesUnevenNvlinks) {
  Topology host = test::dgxLike();
  for (NvLinks& links : host.nvlinks) {
    const int fifth = host.all(TopologyKind::gpu).at(5);
    if (links.from == fifth || links.to == fifth) links.count = 10;
  }
  EXPECT_EQ(warnings(checked(host)), Lines{"NVLinks of GPU 5: 10, others have 12"});
}

TEST(TopoCheck, SeesHostsThatAreNotAlike) {
  std::vector<NamedHost> hosts;
  hosts.push_back({"node0", test::dgxLike()});
  hosts.push_back({"node1", test::dgxLike()});
  EXPECT_EQ(warnings(checkMachine(makeMachine(hosts), {})), Lines{});
  nodeOf(hosts.back().topology, TopologyKind::net, 0).net.guid = 0xabc;
  nodeOf(hosts.back().topology, TopologyKind::gpu, 0).gpu.rank = 5;
  EXPECT_EQ(warnings(checkMachine(makeMachine(hosts), {})), Lines{}) << "what is each host's own";
  nodeOf(hosts.back().topology, TopologyKind::numa_node, 0).cpu.cpus.pop_back();
  EXPECT_EQ(warnings(checkMachine(makeMachine(hosts), {})), Lines{"shapes: 2 different ones among 2 hosts"});
}

TEST(TopoCheck, TellsWhatCouldNotBeSeenAndWhatFilesHeldMore) {
  Topology host = test::dgxLike();
  host.unseen = {"NVML: not there"};
  std::vector<NamedHost> hosts;
  hosts.push_back({"node0", host});
  const Findings findings = checkMachine(makeMachine(std::move(hosts)), {"a.xml: line 3: element <x>"});
  const auto has = [&](const std::string& seen) {
    return std::ranges::any_of(findings, [&](const Finding& finding) {
      return finding.level == Level::note && finding.seen == seen;
    });
  };
  EXPECT_TRUE(has("NVML: not there"));
  EXPECT_TRUE(has("a.xml: line 3: element <x>"));
}

/// "part: in A | in B".
Lines differences(const Topology& a, const Topology& b) {
  const TopologyPaths in_a(a);
  const TopologyPaths in_b(b);
  Lines lines;
  for (const Difference& it : differencesOf(in_a, in_b))
    lines.push_back(it.part + ": " + it.in_a + " | " + it.in_b);
  return lines;
}

TEST(TopoCompare, FindsNoDifferenceBetweenEqualHosts) {
  EXPECT_EQ(differences(test::dgxLike(), test::dgxLike()), Lines{});
}

TEST(TopoCompare, FindsTheMissingNic) {
  const Topology good = test::pcieOnly4();
  Topology bad = good;
  const int port = bad.all(TopologyKind::net).front();
  bad.nodes.erase(bad.nodes.begin() + port - 1, bad.nodes.begin() + port + 1);
  for (TopologyNode& node : bad.nodes) {
    if (node.parent > port) node.parent -= 2;
  }
  validate(bad);
  EXPECT_EQ(differences(good, bad),
            (Lines{"NIC 0 (0000:04:00.0): present | missing", "mlx5_0:1: present | missing"}));
  EXPECT_EQ(differences(bad, good),
            (Lines{"NIC 0 (0000:04:00.0): missing | present", "mlx5_0:1: missing | present"}));
}

TEST(TopoCompare, FindsTheNarrowerLink) {
  Topology bad = test::dgxLike();
  nodeOf(bad, TopologyKind::gpu, 6).link.width = 8;
  EXPECT_EQ(differences(test::dgxLike(), bad),
            Lines{"GPU 6 (0000:11:00.0): PCI link: 16 GT/s x16 | 16 GT/s x8"});
}

TEST(TopoCompare, FindsOtherModelsAndLinksBetweenSwitches) {
  Topology bad = test::dgxLike();
  nodeOf(bad, TopologyKind::nic, 1).pci.device = 0x9999;
  const std::vector<int> switches = bad.all(TopologyKind::pci_bridge);
  bad.peer_switches.push_back({switches[0], switches[1]});
  EXPECT_EQ(differences(test::dgxLike(), bad),
            (Lines{"PCI switch 0000:01:00.0: links to other switches: none | 0000:06:00.0",
                   "PCI switch 0000:06:00.0: links to other switches: none | 0000:01:00.0",
                   "NIC 1 (0000:05:00.0): PCI device: 15b3:0000 | 15b3:9999"}));
}

TEST(TopoCompare, FindsTheOtherNumaNode) {
  Topology bad = test::pcieOnly4();
  nodeOf(bad, TopologyKind::gpu, 2).parent = bad.all(TopologyKind::numa_node).front();
  EXPECT_EQ(differences(test::pcieOnly4(), bad),
            (Lines{"GPU 2 (0000:05:00.0): NUMA node: 1 | 0",
                   "GPU 2 (0000:05:00.0): hangs at: NUMA node 1 | NUMA node 0"}));
}

TEST(TopoCompare, FindsFewerNvlinksAndSlowerPorts) {
  Topology bad = test::nvlinkMesh4();
  for (NvLinks& links : bad.nvlinks) {
    if (links.from + links.to == bad.all(TopologyKind::gpu)[0] + bad.all(TopologyKind::gpu)[1])
      links.count = 3;
  }
  nodeOf(bad, TopologyKind::net, 0).net.mbits_per_s = 100000;
  EXPECT_EQ(
      differences(test::nvlinkMesh4(), bad),
      (Lines{"GPU 0 (0000:01:00.0): NVLinks: GPU 1: 4, GPU 2: 4, GPU 3: 4 | GPU 1: 3, GPU 2: 4, GPU 3: 4",
             "GPU 1 (0000:02:00.0): NVLinks: GPU 0: 4, GPU 2: 4, GPU 3: 4 | GPU 0: 3, GPU 2: 4, GPU 3: 4",
             "mlx5_0:1: speed: 200 Gb/s | 100 Gb/s"}));
}

TEST(TopoCompare, TakesACardInAnotherSlotForTheSameCard) {
  Topology bad = test::pcieOnly4();
  nodeOf(bad, TopologyKind::gpu, 3).bus_id = "0000:77:00.0";
  EXPECT_EQ(differences(test::pcieOnly4(), bad),
            Lines{"GPU 3 (0000:06:00.0): bus id: 0000:06:00.0 | 0000:77:00.0"});
}

std::string refusal(const std::string& spec) {
  try {
    parseAssumedNvlinks(spec);
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    return what.substr(0, what.find(';'));
  }
  return "accepted";
}

TEST(AssumedNvlinks, AreAddedBothWays) {
  Topology host = test::pcieOnly4();
  const Topology before = host;
  addNvlinks(host, parseAssumedNvlinks("0-1:4,3-2:2"), "node0");
  const std::vector<int> gpus = host.all(TopologyKind::gpu);
  EXPECT_EQ(host.nvlinks, (std::vector<NvLinks>{{.from = gpus[0], .to = gpus[1], .count = 4},
                                                {.from = gpus[1], .to = gpus[0], .count = 4},
                                                {.from = gpus[3], .to = gpus[2], .count = 2},
                                                {.from = gpus[2], .to = gpus[3], .count = 2}}));
  EXPECT_EQ(host.nodes, before.nodes);
}

TEST(AssumedNvlinks, MakeOneSwitchForAll) {
  Topology host = test::pcieOnly4();
  addNvlinks(host, parseAssumedNvlinks("all:12"), "node0");
  ASSERT_EQ(host.all(TopologyKind::nvswitch).size(), 1);
  EXPECT_EQ(host.nvlinks.size(), 8);
  validate(host);
}

TEST(AssumedNvlinks, AreRefusedWhereTheyMakeNoSense) {
  const std::string head = "--assume-nvlink: ";
  EXPECT_EQ(refusal("all"), head + "'all' has no count");
  EXPECT_EQ(refusal("all:"), head + "'' in 'all:' is no number");
  EXPECT_EQ(refusal("all:0"), head + "0 NVLinks in 'all:0': it can be 1 to 1024");
  EXPECT_EQ(refusal("all:4,all:4"), head + "'all' is given twice");
  EXPECT_EQ(refusal("0:4"), head + "'0:4' names no pair of GPUs");
  EXPECT_EQ(refusal("0-1:4x"), head + "'4x' in '0-1:4x' is no number");
  EXPECT_EQ(refusal("0-1:99999999999999"), head + "'99999999999999' in '0-1:99999999999999' is no number");
  EXPECT_EQ(refusal("2-2:4"), head + "'2-2:4' links GPU 2 to itself");
  EXPECT_EQ(refusal("0-1:4,1-0:4"), head + "the pair 1-0 is given twice");
  EXPECT_EQ(refusal("0-1:4,"), head + "'' has no count");
}

TEST(AssumedNvlinks, AreRefusedWhereTheyDoNotFit) {
  Topology host = test::pcieOnly4();
  EXPECT_THROW(addNvlinks(host, parseAssumedNvlinks("0-4:1"), "node0"), std::invalid_argument);
  Topology with_links = test::dgxLike();
  EXPECT_THROW(addNvlinks(with_links, parseAssumedNvlinks("all:12"), "node0"), std::invalid_argument);
  Topology without_gpus = test::laptop();
  EXPECT_THROW(addNvlinks(without_gpus, parseAssumedNvlinks("all:12"), "node0"), std::invalid_argument);
}

}  // namespace
}  // namespace tutti::topo
