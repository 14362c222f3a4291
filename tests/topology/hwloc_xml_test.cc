#include "runtime/topology/hwloc_xml.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/topology/file_error.h"
#include "tests/harness/scratch_directory.h"

namespace tutti {
namespace {

TopologyFile read(const std::string& text) { return readHwlocXml(text, "h"); }

std::string errorOf(const std::string& text) {
  try {
    read(text);
  } catch (const FileError& error) {
    return error.what();
  }
  return "none";
}

/// What a <topology> of hwloc 2 holds.
std::string topology(const std::string& inside) {
  return "<topology version=\"2.0\">\n" + inside + "</topology>\n";
}

/// A machine of four CPUs in one NUMA node, with what else is in it, and what is beside it.
std::string machine(const std::string& inside, const std::string& beside = "") {
  return topology(
      R"(<object type="Machine" cpuset="0xf"><object type="NUMANode" os_index="0" cpuset="0xf"/>)" + inside +
      "</object>" + beside);
}

std::string gpu(const std::string& bus_id, int number, const std::string& model = "") {
  const std::string n = std::to_string(number);
  return R"(<object type="PCIDev" gp_index="1)" + n + R"(" pci_busid=")" + bus_id +
         R"(" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="15.753846">)" +
         R"(<object type="OSDev" gp_index="2)" + n + R"(" name="nvml)" + n +
         R"(" osdev_type="1"><info name="GPUModel" value=")" + model + R"("/></object></object>)";
}

std::string bridge(const std::string& bus_id, const std::string& inside,
                   const std::string& speed = "15.753846") {
  return R"(<object type="Bridge" bridge_type="1-1" pci_busid=")" + bus_id +
         R"(" pci_type="0604 [10b5:8747] [0000:0000] ca" pci_link_speed=")" + speed + R"(">)" + inside +
         "</object>";
}

std::string hostBridge(const std::string& inside) {
  return R"(<object type="Bridge" bridge_type="0-1">)" + inside + "</object>";
}

constexpr const char* kTwoSockets = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" gp_index="1">
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x0000000f">
      <info name="CPUVendor" value="GenuineIntel"/>
      <info name="CPUFamilyNumber" value="6"/>
      <info name="CPUModelNumber" value="85"/>
      <object type="NUMANode" os_index="0" cpuset="0x0000000f"><page_type size="4096" count="1"/></object>
      <object type="NUMANode" os_index="2" cpuset="0x0"/>
      <object type="L3Cache" cpuset="0x00000003"><object type="PU" os_index="0" cpuset="0x1"/></object>
      <object type="L3Cache" cpuset="0x0000000c"/>
      <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[00-07]">
        <object type="Bridge" bridge_type="1-1" depth="1" pci_busid="0000:00:02.0" pci_type="0604 [8086:2030] [0000:0000] 04" pci_link_speed="15.753846">
          <object type="Bridge" bridge_type="1-1" depth="2" pci_busid="0000:03:00.0" pci_type="0604 [10b5:8747] [0000:0000] ca" pci_link_speed="15.753846">
            <object type="Bridge" bridge_type="1-1" depth="3" pci_busid="0000:04:08.0" pci_type="0604 [10b5:8747] [0000:0000] ca" pci_link_speed="15.753846">
              <object type="PCIDev" gp_index="10" pci_busid="0000:05:00.0" pci_type="0302 [10de:1db6] [10de:124a] a1" pci_link_speed="15.753846">
                <object type="OSDev" gp_index="11" name="cuda1" subtype="CUDA" osdev_type="5"><info name="GPUModel" value="Tesla V100-PCIE-32GB"/></object>
                <object type="OSDev" gp_index="12" name="nvml0" subtype="NVML" osdev_type="1"/>
              </object>
            </object>
            <object type="Bridge" bridge_type="1-1" depth="3" pci_busid="0000:04:10.0" pci_type="0604 [10b5:8747] [0000:0000] ca" pci_link_speed="7.876923">
              <object type="PCIDev" gp_index="20" pci_busid="0000:06:00.0" pci_type="0207 [15b3:1017] [15b3:0020] 00" pci_link_speed="15.753846">
                <object type="OSDev" name="ib0" osdev_type="2"/>
                <object type="OSDev" name="mlx5_0" osdev_type="3">
                  <info name="NodeGUID" value="248a:0703:001e:39fe"/>
                  <info name="Port1State" value="4"/>
                  <info name="Port1LID" value="0x1"/>
                  <info name="Port2State" value="1"/>
                  <info name="Port2GID0" value="fe80:0000:0000:0000:248a:0703:001e:39fe"/>
                </object>
              </object>
            </object>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0">
      <info name="CPUVendor" value="GenuineIntel"/>
      <object type="NUMANode" os_index="1" cpuset="0x000000f0"/>
      <object type="Bridge" bridge_type="0-1" depth="0">
        <object type="PCIDev" pci_busid="0000:80:00.0" pci_type="0200 [8086:1521] [0000:0000] 01" pci_link_speed="0.000000">
          <object type="OSDev" name="eth0" osdev_type="2"/>
        </object>
        <object type="PCIDev" pci_busid="0000:81:00.0" pci_type="0300 [102b:0534] [0000:0000] 01" pci_link_speed="0.000000"/>
        <object type="PCIDev" pci_busid="0000:82:00.0" pci_type="0106 [8086:0534] [0000:0000] 01" pci_link_speed="0.000000">
          <object type="OSDev" name="sda" osdev_type="0"/>
        </object>
      </object>
    </object>
  </object>
</topology>)";

TEST(HwlocXml, AHostIsRead) {
  const TopologyFile file = read(kTwoSockets);
  ASSERT_EQ(file.hosts.size(), 1U);
  const Topology& host = file.hosts[0];
  EXPECT_EQ(file.remarks, (std::vector<std::string>{"line 11: NUMA node 2 has no CPUs of its own",
                                                    "line 26: port 2 of mlx5_0 is not active"}));
  ASSERT_EQ(host.nodes.size(), 8U);
  CpuDetails first;
  first.package = 0;
  first.cpus = {0, 1, 2, 3};
  first.caches = {{0, 1}, {2, 3}};
  first.architecture = "x86_64";
  first.vendor = "GenuineIntel";
  first.family = 6;
  first.model = 85;
  EXPECT_EQ(host.nodes[0].cpu, first);
  // The root port and the ports of the switch are part of the devices' links; the slower part counts.
  EXPECT_EQ(host.nodes[1].kind, TopologyKind::pci_bridge);
  EXPECT_EQ(host.nodes[1].bus_id, "0000:03:00.0");
  EXPECT_EQ(host.nodes[1].link, (PciLink{8, 16, 0, 0}));
  EXPECT_EQ(host.nodes[2].pci, (PciIdentity{0x030200, 0x10de, 0x1db6, 0x10de, 0x124a}));
  EXPECT_EQ(host.nodes[2].gpu, (GpuDetails{1, 70, -1, true, "Tesla V100-PCIE-32GB"}));
  EXPECT_EQ(host.nodes[2].parent, 1);
  EXPECT_EQ(host.nodes[3].kind, TopologyKind::nic);
  EXPECT_EQ(host.nodes[3].link, (PciLink{8, 8, 0, 0}));
  EXPECT_EQ(host.nodes[4].net, (NetDetails{"mlx5_0", 0, 1, 0, 0, 0x248a0703001e39fe, 65536, true, false}));
  EXPECT_EQ(host.nodes[5].cpu.package, 1);
  EXPECT_EQ(host.nodes[5].cpu.numa, 1);
  EXPECT_EQ(host.nodes[6].parent, 5);
  EXPECT_EQ(host.nodes[6].link, PciLink());
  EXPECT_EQ(host.nodes[7].net, (NetDetails{"eth0", 1, 0, 0, 0, 0, 65536, false, false}));
}

TEST(HwlocXml, LinksAreTheOldestThatFit) {
  const std::pair<const char*, PciLink> speeds[] = {{"0.25", {2.5, 1}},
                                                    {"4.0", {2.5, 16}},
                                                    {"8.0", {5, 16}},
                                                    {"0.984615", {8, 1}},
                                                    {"7.876923", {8, 8}},
                                                    {"15.753846", {8, 16}},
                                                    {"31.507692", {16, 16}},
                                                    {"63.015385", {32, 16}},
                                                    {"121.000000", {64, 16}},
                                                    {"0.000000", {}},
                                                    {"17", {}}};
  for (const auto& [speed, link] : speeds) {
    const TopologyFile file = read(machine(hostBridge(
        R"(<object type="PCIDev" pci_busid="01:00.0" pci_type="0302 [10de:0001] [0000:0000] 00" pci_link_speed=")" +
        std::string(speed) + R"("/>)")));
    EXPECT_EQ(file.hosts.at(0).nodes.at(1).link, link) << speed;
  }
}

TEST(HwlocXml, FunctionsOfOneSlotNeedNoSwitch) {
  const std::string two = gpu("02:00.0", 0) + gpu("02:00.1", 1);
  EXPECT_TRUE(
      read(machine(hostBridge(bridge("00:01.0", two)))).hosts[0].all(TopologyKind::pci_bridge).empty());
  const std::string apart = gpu("02:00.0", 0) + gpu("02:01.0", 1);
  EXPECT_EQ(read(machine(hostBridge(bridge("00:01.0", apart)))).hosts[0].all(TopologyKind::pci_bridge).size(),
            1U);
  EXPECT_EQ(read(machine(hostBridge(bridge("00:01.0", "")))).hosts[0].nodes.size(), 1U);
}

TEST(HwlocXml, NvLinksComeFromTheirBandwidths) {
  const std::string devices = hostBridge(
      gpu("01:00.0", 0, "NVIDIA A100-SXM4-40GB") + gpu("02:00.0", 1, "NVIDIA A100-SXM4-40GB") +
      R"(<object type="PCIDev" gp_index="30" pci_busid="c1:00.0" pci_type="0680 [10de:1af1] [0000:0000] a1"/>)" +
      R"(<object type="PCIDev" gp_index="31" pci_busid="c2:00.0" pci_type="0680 [10de:1af1] [0000:0000] a1"/>)");
  const auto matrix = [](const std::string& indexes, const std::string& values) {
    return R"(<distances2hetero nbobjs="4" kind="25" name="NVLinkBandwidth"><indexes length="1">)" + indexes +
           "</indexes><u64values>" + values + "</u64values></distances2hetero>";
  };
  const TopologyFile file = read(machine(devices, matrix("OSDev:20 OSDev:21 PCIDev:30 PCIDev:31",
                                                         "1000000 0 300000 300000 0 1000000 300000 300000 "
                                                         "300000 300000 1000000 0 300000 300000 0 1000000")));
  // 300000 MB/s are six links; both switches are one.
  EXPECT_EQ(file.hosts.at(0).nvlinks, (std::vector<NvLinks>{{1, 3, 12}, {2, 3, 12}, {3, 1, 12}, {3, 2, 12}}));

  // Links that are none of the generation's are as fast as they say, less their packets' headers; a package
  // is the CPU.
  const TopologyFile odd =
      read(machine(devices, matrix("OSDev:20 OSDev:21 Package:7 OSDev:99",
                                   "1 12500 50000 50000 12500 1 0 0 50000 0 1 0 50000 0 0 1")));
  EXPECT_EQ(odd.hosts.at(0).nvlinks,
            (std::vector<NvLinks>{{0, 1, 1, 0, true}, {1, 0, 1, 0, true}, {1, 2, 1, 10}, {2, 1, 1, 10}}));
  EXPECT_EQ(odd.remarks, std::vector<std::string>{"line 2: NVLinks to something that is not here"});

  EXPECT_EQ(errorOf(machine(devices, matrix("OSDev:20", "1"))),
            "h:2: a matrix of 4 objects with 1 indexes and 1 values");
  EXPECT_EQ(errorOf(machine(devices, matrix("OSDev:20 1 2 3", "1 -5 1 1 1 1 1 1 1 1 1 1 1 1 1 1"))),
            "h:2: a value of -5");
  EXPECT_EQ(errorOf(machine(devices, matrix("OSDev:20 1 2 3", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 100000001"))),
            "h:2: a value of 100000001");
}

TEST(HwlocXml, NumbersOfGpusThatAreThereTwiceAreMadeAnew) {
  const TopologyFile file = read(machine(
      hostBridge(gpu("01:00.0", 1, "NVIDIA A100-SXM4-40GB") + gpu("02:00.0", 1, "NVIDIA A100-SXM4-40GB"))));
  std::set<int> numbers;
  for (const TopologyNode& node : file.hosts.at(0).nodes) {
    if (node.kind == TopologyKind::gpu) numbers.insert(node.gpu.device);
  }
  EXPECT_EQ(numbers, (std::set<int>{0, 1}));
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_NE(file.remarks[0].find("GPU 1 is there twice: this one gets another number"), std::string::npos);
}

TEST(HwlocXml, NetworkDevicesMayHaveNoPlace) {
  const Topology host = read(machine(R"(<object type="OSDev" name="eth0" osdev_type="2"/>)")).hosts.at(0);
  ASSERT_EQ(host.nodes.size(), 3U);
  EXPECT_EQ(host.nodes[1].kind, TopologyKind::nic);
  EXPECT_EQ(host.nodes[1].bus_id, "");
  EXPECT_EQ(host.nodes[2].net.name, "eth0");
}

TEST(HwlocXml, MemoryOfTwoKindsIsOneNode) {
  const TopologyFile file = read(topology(R"(<object type="Machine" cpuset="0x3">
<object type="NUMANode" os_index="1" cpuset="0x3"/><object type="NUMANode" os_index="0" cpuset="0x3"/></object>)"));
  ASSERT_EQ(file.hosts.at(0).nodes.size(), 1U);
  EXPECT_EQ(file.hosts[0].nodes[0].cpu.numa, 0);
  EXPECT_EQ(file.remarks, std::vector<std::string>{"line 3: NUMA node 1 has no CPUs of its own"});
}

TEST(HwlocXml, WhatPackagesSayMayBeAnything) {
  const CpuDetails cpu =
      read(topology(R"(<object type="Machine" cpuset="0x3"><object type="Package" os_index="4" cpuset="0x3">
<info name="CPUVendor" value=" Some "/><info name="CPUFamilyNumber" value="450255451"/><info name="CPUModelNumber" value="x"/>
<object type="NUMANode" os_index="0" cpuset="0x3"/></object></object>)"))
          .hosts.at(0)
          .nodes.at(0)
          .cpu;
  EXPECT_EQ(cpu.package, 4);
  EXPECT_EQ(cpu.vendor, "Some");
  EXPECT_EQ(cpu.family, 0);
  EXPECT_EQ(cpu.model, 0);
}

TEST(HwlocXml, WithoutNumaNodesTheMachineIsOne) {
  const TopologyFile file = read(topology(R"(<object type="Machine" cpuset="0x3"/>)"));
  ASSERT_EQ(file.hosts.at(0).nodes.size(), 1U);
  EXPECT_EQ(file.hosts[0].nodes[0].cpu.cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(read(topology(R"(<object type="Machine"/>)")).hosts.at(0).nodes.size(), 1U);
}

TEST(HwlocXml, WrongFilesAreRefusedWithLineAndReason) {
  EXPECT_EQ(errorOf(R"(<topology><object type="Machine"/></topology>)"),
            "h:1: XML of hwloc 1; lstopo of hwloc 2 reads it and writes what is needed here (lstopo -i OLD "
            "NEW.xml)");
  EXPECT_EQ(errorOf(R"(<topology version="3.0"/>)"),
            R"(h:1: attribute "version" of <topology> is "3.0", expected 2.0, as hwloc 2 writes it)");
  EXPECT_EQ(errorOf("<system/>"), "h:1: <system>, expected <topology>");
  EXPECT_EQ(errorOf(topology("")), "h:1: no <object>, so no machine");
  EXPECT_EQ(errorOf(topology(R"(<object type="PU"/>)")),
            R"(h:2: attribute "type" of <object> is "PU", expected Machine at the top)");
  EXPECT_EQ(errorOf(topology(R"(<object type="Machine" cpuset="0xf...f"/>)")),
            R"(h:2: attribute "cpuset" of <object> is "0xf...f", expected words in base 16, such as )"
            "0x000000ff,0xffff0000");
  EXPECT_EQ(errorOf(machine("\n<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xf\"/>")),
            "h:3: NUMA node 0 is in line 2 already");
  EXPECT_EQ(errorOf(machine("\n<object type=\"PCIDev\" pci_busid=\"zz\"/>")),
            R"(h:3: attribute "pci_busid" of <object> is "zz", expected a bus id such as 0000:3b:00.0)");
  EXPECT_EQ(
      errorOf(machine("\n<object type=\"PCIDev\" pci_busid=\"01:00.0\" pci_type=\"0302 [10de:20b0]\"/>")),
      R"(h:3: attribute "pci_type" of <object> is "0302 [10de:20b0]", expected such as 0302 [10de:15f9] )"
      "[10de:116b] a1");
  EXPECT_EQ(errorOf(machine(gpu("01:00.0", 0) + "\n" + gpu("01:00.0", 1))),
            "h:3: the bus id 0000:01:00.0 is there twice");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"(<object type="Group" cpuset="0xf">)";
  for (int i = 0; i < 100; ++i) deep += "</object>";
  EXPECT_EQ(errorOf(machine(deep)), "h:2: more than 64 <object> in each other");
}

TEST(TopologyFiles, AreToldApartByTheirRoot) {
  const test::ScratchDirectory scratch;
  const auto file = [&scratch](const std::string& text) {
    return readTopologyFile(scratch.write("t.xml", text));
  };
  EXPECT_EQ(file(kTwoSockets).hosts.at(0).nodes.size(), 8U);
  EXPECT_EQ(file("<system><cpu/></system>").hosts.at(0).nodes.size(), 1U);
  const auto errorOfFile = [](const std::string& path) -> std::string {
    try {
      readTopologyFile(path);
    } catch (const FileError& error) {
      return error.what();
    }
    return "none";
  };
  const std::string other = scratch.write("other.xml", "\n<html/>");
  EXPECT_EQ(errorOfFile(other),
            other + ":1: <html> is the root, expected <system> (NCCL) or <topology> (hwloc)");
  EXPECT_EQ(errorOfFile("/nowhere/t.xml"), "/nowhere/t.xml: cannot be opened: No such file or directory");
  EXPECT_EQ(errorOfFile("/dev/zero"), "/dev/zero:1: larger than 64 MiB");
  EXPECT_EQ(errorOfFile(scratch.path()), scratch.path() + ": is a directory, expected XML");
}

}  // namespace
}  // namespace tutti
