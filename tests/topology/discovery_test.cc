// What is found of machines that are invented, and of this one.
#include "runtime/topology/discovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/topology/nccl_xml.h"
#include "tests/topology/fake_system.h"

namespace tutti {
namespace {

constexpr const char* kBridge = "0x060400";
constexpr const char* kGpu = "0x030200";
constexpr const char* kInfiniBand = "0x020700";
constexpr const char* kEthernet = "0x020000";
constexpr const char* kNvidia = "0x10de";
constexpr const char* kMellanox = "0x15b3";

std::string parentOf(const Topology& topology, const std::string& bus_id) {
  const int node = topology.find(bus_id);
  if (node == kNoNode) return "not there";
  return topology.label(topology.nodes[static_cast<std::size_t>(node)].parent);
}
const TopologyNode& at(const Topology& topology, const std::string& bus_id) {
  return topology.nodes.at(static_cast<std::size_t>(topology.find(bus_id)));
}
std::vector<std::string> portsOf(const Topology& topology) {
  std::vector<std::string> ports;
  for (const int port : topology.all(TopologyKind::net)) {
    const TopologyNode& node = topology.nodes[static_cast<std::size_t>(port)];
    const std::string place = topology.nodes[static_cast<std::size_t>(node.parent)].bus_id;
    ports.push_back(fmt::format("{} at {}, {} Mbit/s", topology.label(port), place.empty() ? "none" : place,
                                node.net.mbits_per_s));
  }
  return ports;
}
testing::AssertionResult saysUnseen(const Topology& topology, const std::string& text) {
  std::string all;
  for (const std::string& unseen : topology.unseen) {
    if (unseen.find(text) != std::string::npos) return testing::AssertionSuccess();
    all += unseen + "\n";
  }
  return testing::AssertionFailure() << "\"" << text << "\" is not in\n" << all;
}

/// Two sockets of a NUMA node each. At the first a switch with GPU 05 and card 06 (two ports, one is down);
/// at the second, right at the root, GPU 82, whose link has half its lanes, and an Ethernet card.
class TwoSockets : public testing::Test {
 protected:
  TwoSockets() {
    system_.addNumaNode(0, "0-1,4-5");
    system_.addNumaNode(1, "2-3,6-7");
    system_.addNumaNode(2, "");  // memory without CPUs
    for (const int cpu : {0, 1, 4, 5}) system_.addCpu(cpu, 0, "0-7", cpu % 4 == 0 ? "0,4" : "1,5");
    for (const int cpu : {2, 3, 6, 7}) system_.addCpu(cpu, 1, cpu % 4 == 2 ? "2,6" : "3,7", "");
    system_.write("proc/cpuinfo",
                  "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n"
                  "model name\t: Intel(R) Xeon(R)\nprocessor\t: 1\nvendor_id\t: GenuineIntel");
    system_.addPci(kRoot, kBridge, "0x8086", 0);
    system_.addPci(kSwitch, kBridge, "0x1000", 0);
    system_.addPci(kSwitch + "/0000:04:00.0", kBridge, "0x1000", 0);
    system_.addPci(kSwitch + "/0000:04:01.0", kBridge, "0x1000", 0);
    system_.addPci(kNearGpu, kGpu, kNvidia, 0);
    system_.addPci(kCard, kInfiniBand, kMellanox, 0);
    system_.addPci("pci0000:80/0000:80:01.0", kBridge, "0x8086", 1);
    system_.addPci(kFarGpu, kGpu, kNvidia, 1);
    system_.addPci(kFarGpu + ".1", "0x040300", kNvidia, 1);  // its sound
    system_.addPci(kEthernetCard, kEthernet, "0x8086", 1);
    system_.addPci("pci0000:80/0000:80:03.0", "0x030000", "0x1a03", 1);  // the console
    system_.addRdma("mlx5_0", 1, kCard, "4: ACTIVE", "200 Gb/sec (4X HDR)");
    system_.addRdma("mlx5_0", 2, kCard, "1: DOWN", "10 Gb/sec (4X)");
    system_.addInterface("ens9", kEthernetCard + "/virtio2", "0x1003", "25000");
    system_.addInterface("lo", "", "0x9", "");
  }

  const std::string kRoot = "pci0000:00/0000:00:01.0";
  const std::string kSwitch = kRoot + "/0000:03:00.0";
  const std::string kNearGpu = kSwitch + "/0000:04:00.0/0000:05:00.0";
  const std::string kCard = kSwitch + "/0000:04:01.0/0000:06:00.0";
  const std::string kFarGpu = "pci0000:80/0000:80:01.0/0000:82:00.0";
  const std::string kEthernetCard = "pci0000:80/0000:80:02.0";
  test::FakeSystem system_;
};

TEST_F(TwoSockets, CpusAreKnownBySocketAndCache) {
  const Topology topology = discoverTopology(system_.options());
  const std::vector<int> nodes = topology.all(TopologyKind::numa_node);
  ASSERT_EQ(nodes.size(), 2U);
  const CpuDetails& first = topology.nodes[0].cpu;
  const CpuDetails& second = topology.nodes[1].cpu;
  EXPECT_EQ(first.cpus, (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(first.caches, (std::vector<std::vector<int>>{{0, 4}, {1, 5}}));
  EXPECT_EQ(second.caches, (std::vector<std::vector<int>>{{2, 6}, {3, 7}})) << "the last cache is the second";
  EXPECT_EQ(first.package, 0);
  EXPECT_EQ(second.package, 1);
  EXPECT_EQ(first.vendor, "GenuineIntel");
  EXPECT_EQ(first.family, 6);
  EXPECT_EQ(first.model, 106);
}

TEST_F(TwoSockets, ASwitchIsOneNodeAndPortsOfTheRootAreNone) {
  const Topology topology = discoverTopology(system_.options());
  EXPECT_NO_THROW(validate(topology));
  EXPECT_EQ(parentOf(topology, "0000:05:00.0"), "PCI bridge (0000:03:00.0)");
  EXPECT_EQ(parentOf(topology, "0000:06:00.0"), "PCI bridge (0000:03:00.0)");
  EXPECT_EQ(parentOf(topology, "0000:03:00.0"), "NUMA node 0");
  EXPECT_EQ(parentOf(topology, "0000:82:00.0"), "NUMA node 1");
  EXPECT_EQ(topology.all(TopologyKind::gpu).size(), 2U) << "neither the console nor the sound";
  EXPECT_EQ(topology.all(TopologyKind::pci_bridge).size(), 1U);
  EXPECT_EQ(at(topology, "0000:05:00.0").pci.device_class, 0x030200U);
  EXPECT_EQ(at(topology, "0000:06:00.0").pci.vendor, 0x15b3);
}

TEST_F(TwoSockets, PortsThatAreUpAreListedAndOthersSaid) {
  const Topology topology = discoverTopology(system_.options());
  EXPECT_EQ(portsOf(topology), (std::vector<std::string>{"mlx5_0:1 at 0000:06:00.0, 200000 Mbit/s"}))
      << "where there is RDMA, interfaces are none";
  EXPECT_EQ(topology.find("0000:80:02.0"), kNoNode);
  EXPECT_EQ(topology.nodes[static_cast<std::size_t>(topology.all(TopologyKind::net)[0])].net.guid,
            0xb8599f0300d41a2cU);
  EXPECT_TRUE(saysUnseen(topology, "mlx5_0:2: it is not up (1: DOWN)"));
}

TEST_F(TwoSockets, CardsReachGpusByAModuleOrTheOpenDriver) {
  const auto reaches = [this] {
    const Topology topology = discoverTopology(system_.options());
    return topology.nodes[static_cast<std::size_t>(topology.all(TopologyKind::net).at(0))].net.reaches_gpus;
  };
  EXPECT_FALSE(reaches());
  system_.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1");
  EXPECT_FALSE(reaches());
  system_.write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1");
  EXPECT_TRUE(reaches());
  system_.write("proc/driver/nvidia/version", "");
  system_.write("module/nvidia_peermem/version", "1");
  EXPECT_TRUE(reaches());
}

TEST_F(TwoSockets, WithoutRdmaInterfacesOfCardsAreListed) {
  system_.write("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  system_.addInterface("vethab", "", "0x1003", "10000");
  system_.addInterface("tun0", "", "0x1003", "10");
  system_.addInterface("enx0", kCard, "0x1002", "100");  // down
  EXPECT_EQ(portsOf(discoverTopology(system_.options())),
            (std::vector<std::string>{"ens9 at 0000:80:02.0, 25000 Mbit/s"}));
}

TEST_F(TwoSockets, LinksAreNarrowedByTheSlotAndGpusSleep) {
  system_.setLink(kRoot, "16.0 GT/s PCIe", 16, "16.0 GT/s PCIe", 16);
  system_.setLink(kSwitch, "16.0 GT/s PCIe", 16, "32.0 GT/s PCIe", 16);
  system_.setLink("pci0000:80/0000:80:01.0", "2.5 GT/s PCIe", 8, "16.0 GT/s PCIe", 16);
  system_.setLink(kFarGpu, "2.5 GT/s PCIe", 8, "32.0 GT/s PCIe", 16);
  system_.setLink(kCard, "8.0 GT/s PCIe", 16, "16.0 GT/s PCIe", 16);
  system_.setLink(kNearGpu, "Unknown", 63, "Unknown", 255);
  const Topology topology = discoverTopology(system_.options());
  EXPECT_EQ(at(topology, "0000:03:00.0").link, (PciLink{16, 16, 16, 16})) << "its port does 16 at most";
  EXPECT_EQ(at(topology, "0000:82:00.0").link, (PciLink{16, 8, 16, 16}))
      << "an idle GPU's speed is no fault, its width is";
  EXPECT_EQ(at(topology, "0000:06:00.0").link, (PciLink{8, 16, 16, 16}));
  EXPECT_EQ(at(topology, "0000:05:00.0").link, PciLink{});
}

TEST_F(TwoSockets, AnUntoldNumaNodeIsSaid) {
  system_.addPci(kFarGpu, kGpu, kNvidia, -1);
  const Topology topology = discoverTopology(system_.options());
  EXPECT_EQ(parentOf(topology, "0000:82:00.0"), "NUMA node 0");
  EXPECT_TRUE(saysUnseen(topology, "NUMA node of 0000:82:00.0"));
  const Topology read = readNcclXml(writeNcclXml({topology}), "found").hosts[0];
  for (const Topology& each : {topology, read}) {
    EXPECT_FALSE(each.isNumaTold(each.find("0000:82:00.0")));
    EXPECT_TRUE(each.isNumaTold(each.find("0000:05:00.0")));
    EXPECT_TRUE(each.isNumaTold(each.find("0000:06:00.0")));
  }
}

TEST_F(TwoSockets, WhatIsFoundIsTheSameAfterWritingAndReading) {
  Topology topology = discoverTopology(system_.options());
  topology.unseen.clear();
  const std::string text = writeNcclXml({topology});
  EXPECT_EQ(writeNcclXml(readNcclXml(text, "found").hosts), text);
}

TEST_F(TwoSockets, AFileIsCompletedNotExtended) {
  const std::string text =
      "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" vendor=\"v\" familyid=\"1\" "
      "modelid=\"1\">"
      "<pci busid=\"0000:06:00.0\" class=\"0x020700\" link_speed=\"5.0 GT/s PCIe\" link_width=\"4\"/>"
      "</cpu></system>";
  const Topology topology = completeTopology(readNcclXml(text, "file").hosts[0], system_.options());
  EXPECT_EQ(topology.find("0000:05:00.0"), kNoNode);
  EXPECT_EQ(portsOf(topology), (std::vector<std::string>{"mlx5_0:1 at 0000:06:00.0, 200000 Mbit/s"}));
  EXPECT_EQ(at(topology, "0000:06:00.0").link.width, 4) << "what the file says stays";
  EXPECT_EQ(at(topology, "0000:06:00.0").pci.vendor, 0x15b3) << "what it leaves out is added";
}

TEST(Discovery, AnEmptySystemIsOneNumaNodeAndSaysWhatIsMissing) {
  const test::FakeSystem system;
  const Topology topology = discoverTopology(system.options());
  EXPECT_NO_THROW(validate(topology));
  ASSERT_EQ(topology.nodes.size(), 1U);
  EXPECT_FALSE(topology.nodes[0].cpu.cpus.empty());
  for (const char* what : {"NUMA nodes", "PCI devices", "network cards"})
    EXPECT_TRUE(saysUnseen(topology, what));
}

TEST(Discovery, InContainersVirtualInterfacesAreAllThereIs) {
  const test::FakeSystem system;
  system.addInterface("lo", "", "0x9", "");
  EXPECT_EQ(portsOf(discoverTopology(system.options())), (std::vector<std::string>{"lo at none, 0 Mbit/s"}));
  system.addInterface("eth0", "", "0x1003", "10000");
  system.addInterface("docker0", "", "0x1003", "10000");
  system.addInterface("down0", "", "0x1002", "10000");
  EXPECT_EQ(portsOf(discoverTopology(system.options())),
            (std::vector<std::string>{"eth0 at none, 10000 Mbit/s"}));
}

TEST(Discovery, SoftRoceHangsWhereItsInterfaceDoes) {
  const test::FakeSystem system;
  system.addNumaNode(0, "0");
  system.addPci("pci0000:00/0000:00:03.0", kEthernet, "0x1af4", -1);
  system.addInterface("eth0", "pci0000:00/0000:00:03.0/virtio1", "0x1003", "-1");
  system.addRdma("rxe0", 1, "", "4: ACTIVE", "2.5 Gb/sec (1X SDR)");
  system.write("class/infiniband/rxe0/parent", "eth0");
  EXPECT_EQ(portsOf(discoverTopology(system.options())),
            (std::vector<std::string>{"rxe0:1 at 0000:00:03.0, 2500 Mbit/s"}));
}

/// GPUs by the invented NVML; CUDA finds none of them here.
class Nvml : public testing::Test {
 protected:
  Nvml() {
    for (int node = 0; node < 2; ++node)
      system_.addNumaNode(node, fmt::format("{}-{}", node * 4, node * 4 + 3));
    for (int gpu = 0; gpu < 8; ++gpu) {
      system_.addPci(fmt::format("pci0000:10/0000:10:{:02x}.0/0000:{:02x}:00.0", gpu, 0x11 + gpu), kGpu,
                     kNvidia, gpu / 4);
    }
    options_ = system_.options();
    options_.with_gpus = true;
    options_.nvml = TUTTI_FAKE_NVML_LIBRARY;
  }
  ~Nvml() override { ::unsetenv("TUTTI_FAKE_NVML"); }

  Topology discover(const char* arrangement) {
    ::setenv("TUTTI_FAKE_NVML", arrangement, 1);
    Topology topology = discoverTopology(options_);
    EXPECT_NO_THROW(validate(topology));
    EXPECT_EQ(topology.all(TopologyKind::gpu).size(), 8U);
    return topology;
  }
  /// "GPU 0 > GPU 1: 3", sorted.
  static std::vector<std::string> links(const Topology& topology) {
    std::vector<std::string> texts;
    const auto kind = [&](int node) {
      const TopologyNode& it = topology.nodes[static_cast<std::size_t>(node)];
      return it.kind == TopologyKind::gpu ? it.bus_id.substr(5, 2) : std::string(name(it.kind));
    };
    for (const NvLinks& links : topology.nvlinks)
      texts.push_back(fmt::format("{} > {}: {}", kind(links.from), kind(links.to), links.count));
    std::ranges::sort(texts);
    return texts;
  }

  test::FakeSystem system_;
  DiscoveryOptions options_;
};

TEST_F(Nvml, LinksToSwitchesEndAtOneNode) {
  const Topology topology = discover("switches");
  const TopologyNode& gpu = at(topology, "0000:13:00.0");
  EXPECT_EQ(gpu.gpu.compute_capability, 80);
  EXPECT_EQ(gpu.gpu.model, "Invented A100");
  EXPECT_EQ(topology.all(TopologyKind::nvswitch).size(), 1U);
  std::vector<std::string> expected;
  for (int bus = 11; bus <= 18; ++bus) expected.push_back(fmt::format("{} > NVSwitch: 12", bus));
  for (int bus = 11; bus <= 18; ++bus) expected.push_back(fmt::format("NVSwitch > {}: 12", bus));
  EXPECT_EQ(links(topology), expected);
}

TEST_F(Nvml, ASwitchThatPciShowsIsThatNode) {
  system_.addPci("pci0000:20/0000:20:00.0/0000:21:00.0", "0x068000", kNvidia, 0);
  const Topology topology = discover("switches");
  ASSERT_EQ(topology.all(TopologyKind::nvswitch).size(), 1U);
  EXPECT_EQ(topology.nodes[static_cast<std::size_t>(topology.all(TopologyKind::nvswitch)[0])].bus_id,
            "0000:21:00.0");
}

TEST_F(Nvml, LinksBetweenGpusThatAreUpAreCounted) {
  const Topology topology = discover("pairs");
  EXPECT_EQ(links(topology),
            (std::vector<std::string>{"11 > 12: 3", "12 > 11: 3", "13 > 14: 3", "14 > 13: 3", "15 > 16: 3",
                                      "16 > 15: 3", "17 > 18: 3", "18 > 17: 3"}));
  EXPECT_TRUE(saysUnseen(topology, "what an NVLink of GPU"));
}

TEST_F(Nvml, LinksToTheCpuAreC2c) {
  const Topology topology = discover("c2c");
  ASSERT_EQ(topology.nvlinks.size(), 16U) << "both ways";
  for (const NvLinks& links : topology.nvlinks) {
    EXPECT_TRUE(links.is_c2c);
    EXPECT_EQ(links.count, 9);
    EXPECT_EQ(links.gbytes_per_s, 45);
  }
  const NvLinks& first = topology.nvlinks[0];
  EXPECT_EQ(topology.numaOf(std::max(first.from, first.to)), std::min(first.from, first.to));
}

TEST_F(Nvml, GpusThatPciHidesHangAtTheFirstNode) {
  const test::FakeSystem other;
  other.addNumaNode(0, "0");
  options_.system = other.options().system;
  const Topology topology = discover("switches");
  EXPECT_EQ(parentOf(topology, "0000:15:00.0"), "NUMA node 0");
  EXPECT_TRUE(saysUnseen(topology, "the place of 0000:15:00.0"));
}

TEST_F(Nvml, WithoutItNvlinksAreUnseen) {
  EXPECT_TRUE(saysUnseen(discover("broken"), "NVLinks and NVSwitches, by NVML: nvmlInit: Driver Not Loaded"));
  options_.nvml = "libtutti_never_made.so.1";
  EXPECT_TRUE(saysUnseen(discover("pairs"), "libtutti_never_made.so.1: cannot open shared object"));
}

TEST(ThisMachine, HwlocAndSysfsAgree) {
  DiscoveryOptions options;
  options.with_gpus = false;
  const Topology by_hwloc = discoverTopology(options);
  for (const std::string& unseen : by_hwloc.unseen) {
    if (unseen.starts_with("what hwloc tells")) GTEST_SKIP() << unseen;
  }
  options.hwloc = HwlocUse::never;
  const Topology by_sysfs = discoverTopology(options);
  EXPECT_EQ(writeNcclXml({by_hwloc}), writeNcclXml({by_sysfs}));
}

TEST(Hwloc, TellsCpusWhereSysfsIsHidden) {
  const test::FakeSystem hidden;
  DiscoveryOptions options = hidden.options();
  options.hwloc = HwlocUse::where_sysfs_lacks;
  // A machine that hwloc makes up.
  ::setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode] L3Cache:2 PU:3", 1);
  const Topology topology = discoverTopology(options);
  ::unsetenv("HWLOC_SYNTHETIC");
  for (const std::string& unseen : topology.unseen) {
    if (unseen.starts_with("what hwloc tells")) GTEST_SKIP() << unseen;
  }
  const std::vector<int> nodes = topology.all(TopologyKind::numa_node);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(topology.nodes[0].cpu.caches, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(topology.nodes[static_cast<std::size_t>(nodes[1])].cpu.cpus,
            (std::vector<int>{6, 7, 8, 9, 10, 11}));
  // Where sysfs tells them, hwloc is not asked.
  hidden.addNumaNode(0, "0-1");
  ::setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode] L3Cache:2 PU:3", 1);
  EXPECT_EQ(discoverTopology(options).all(TopologyKind::numa_node).size(), 1U);
  ::unsetenv("HWLOC_SYNTHETIC");
}

TEST(ThisMachine, ThatIsFoundTwiceIsTheSame) {
  const Topology found = discoverTopology();
  EXPECT_NO_THROW(validate(found));
  EXPECT_EQ(writeNcclXml({found}), writeNcclXml({discoverTopology()}));
}

}  // namespace
}  // namespace tutti
