#include "runtime/topology/nccl_xml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "runtime/topology/file_error.h"
#include "tests/topology/builders.h"

namespace tutti {
namespace {

TopologyFile read(const std::string& text) { return readNcclXml(text, "f"); }

/// The only host of a file.
Topology host(const std::string& text) {
  TopologyFile file = read(text);
  EXPECT_EQ(file.hosts.size(), 1U);
  return file.hosts.at(0);
}

/// `inside` is what a <cpu> holds.
std::string system(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"f\">\n" + inside + "</cpu>\n</system>\n";
}

std::string gpu(const std::string& bus_id, const std::string& inside = "") {
  return R"(<pci busid=")" + bus_id + R"(" class="0x030200">)" + inside + "</pci>\n";
}

std::string errorOf(const std::string& text, const std::string& name = "f") {
  try {
    readNcclXml(text, name);
  } catch (const FileError& error) {
    return error.what();
  }
  return "none";
}

TEST(NcclXml, EveryAttributeIsRead) {
  const Topology found = host(R"(<system version="1">
  <cpu host_hash="0x5a" numaid="3" affinity="00000001,000000ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:21:00.0" class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x1" subsystem_device="0x2" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:22:00.0" class="0x030200" link_speed="8 GT/s" link_width="8">
        <gpu dev="1" sm="80" rank="5" gdr="1"><nvlink target="0000:23:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:23:00.0" class="0x030200" link_speed="" link_width="0">
        <gpu dev="0" sm="90" rank="4" gdr="0"><nvlink target="0000:22:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:24:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="2" speed="200000" port="1" latency="0.5" guid="0x1122334455667788" maxconn="131072" gdr="1" coll="1"/></nic>
      </pci>
    </pci>
    <nic><net name="eth0" dev="3" speed="-1" port="0" latency="0.0" guid="0x0" maxconn="65536" gdr="0"/></nic>
  </cpu>
</system>)");
  ASSERT_EQ(found.nodes.size(), 8U);
  const CpuDetails& cpu = found.nodes[0].cpu;
  EXPECT_EQ(cpu.numa, 3);
  EXPECT_EQ(cpu.cpus, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 32}));
  EXPECT_EQ(cpu.architecture + cpu.vendor, "x86_64AuthenticAMD");
  EXPECT_EQ(cpu.family, 175);
  EXPECT_EQ(cpu.model, 1);
  EXPECT_EQ(found.nodes[1].kind, TopologyKind::pci_bridge);
  EXPECT_EQ(found.nodes[1].pci, (PciIdentity{0x060400, 0x1000, 0xc010, 1, 2}));
  EXPECT_EQ(found.nodes[1].link, (PciLink{16, 16, 0, 0}));
  EXPECT_EQ(found.nodes[2].gpu, (GpuDetails{1, 80, 5, true, ""}));
  EXPECT_EQ(found.nodes[2].link, (PciLink{8, 8, 0, 0}));
  EXPECT_EQ(found.nodes[3].gpu, (GpuDetails{0, 90, 4, false, ""}));
  EXPECT_EQ(found.nodes[3].link, PciLink());
  EXPECT_EQ(found.nodes[4].kind, TopologyKind::nic);
  EXPECT_EQ(found.nodes[5].net,
            (NetDetails{"mlx5_0", 2, 1, 200000, 0.5, 0x1122334455667788, 131072, true, true}));
  EXPECT_EQ(found.nodes[6].kind, TopologyKind::nic);
  EXPECT_EQ(found.nodes[6].parent, 0);
  EXPECT_EQ(found.nodes[7].net, (NetDetails{"eth0", 3, 0, 0, 0, 0, 65536, false, false}));
  EXPECT_EQ(found.nvlinks, (std::vector<NvLinks>{{2, 3, 4, 0, false}, {3, 2, 4, 0, false}}));
}

TEST(NcclXml, ClassesStandForWhatIsNotTold) {
  const TopologyFile file = read(R"(<!-- by hand -->
<system version="1">
  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="8 GT/s" link_width="16"> <!-- a switch -->
      <pci busid="0000:10:1D.0" class="0x030200"/>
      <pci busid="0000:10:1c.0" class="0x030000"/>
      <pci busid="0000:10:1b.0" class="0x020000"/>
      <pci busid="0000:10:1a.0" class="0x010802"/>
    </pci>
  </cpu>
</system>)");
  const Topology& found = file.hosts.at(0);
  ASSERT_EQ(found.nodes.size(), 6U);
  EXPECT_EQ(found.nodes[2].bus_id, "0000:10:1d.0");
  EXPECT_EQ(found.nodes[2].gpu, (GpuDetails{0, 0, -1, true, ""}));   // numbered as it appears
  EXPECT_EQ(found.nodes[3].gpu, (GpuDetails{1, 0, -1, false, ""}));  // a display card
  EXPECT_EQ(found.nodes[4].kind, TopologyKind::nic);
  EXPECT_EQ(found.nodes[5].kind, TopologyKind::net);
  EXPECT_EQ(found.nodes[5].parent, 4);
  EXPECT_EQ(found.nodes[5].net.device, 0);
  EXPECT_TRUE(found.nodes[5].net.reaches_gpus);
  EXPECT_EQ(file.remarks,
            (std::vector<std::string>{"line 8: 0000:10:1a.0: class 0x010802 is no GPU, no NIC and no bridge",
                                      "line 7: a NIC without a speed: taken as 10 Gbit/s"}));
  const std::string nics =
      R"(<pci busid="01:00.0" class="0x020000"/><pci busid="02:00.0" class="0x020000"/>)";
  EXPECT_EQ(read(system(nics)).remarks,
            std::vector<std::string>{
                "line 3: 2 NICs without a speed, this one the first: each taken as 10 Gbit/s"});
}

TEST(NcclXml, DevicesThatLeadNowhereAreLeftOut) {
  const TopologyFile file =
      read(system("<pci busid=\"01:00.0\"><pci busid=\"02:00.0\" class=\"0x010802\"/></pci>\n"
                  R"(<pci busid="03:00.0">)" +
                  gpu("04:00.0") + "</pci>"));
  ASSERT_EQ(file.hosts.at(0).nodes.size(), 3U);
  EXPECT_EQ(file.hosts[0].nodes[1].kind, TopologyKind::pci_bridge);
  EXPECT_EQ(file.hosts[0].nodes[1].bus_id, "0000:03:00.0");
  EXPECT_EQ(file.remarks,
            std::vector<std::string>{"line 3: 0000:01:00.0: class 0x000000 is no GPU, no NIC and no bridge"});
}

TEST(NcclXml, NumbersThatAreTakenAreNotGivenAgain) {
  const Topology found = host(system(gpu("01:00.0") + gpu("02:00.0", R"(<gpu dev="0"/>)") + gpu("03:00.0") +
                                     gpu("04:00.0", R"(<gpu dev="1"/>)")));
  std::vector<int> devices;
  for (const int node : found.all(TopologyKind::gpu)) {
    devices.push_back(found.nodes[static_cast<std::size_t>(node)].gpu.device);
  }
  EXPECT_EQ(devices, (std::vector<int>{2, 0, 3, 1}));
}

TEST(NcclXml, LinksToNvSwitchesEndAtOneNode) {
  const Topology found = host(
      system(gpu("01:00.0", R"(<gpu><nvlink target="0000:c1:00.0" count="2" tclass="0x068000"/>
                             <nvlink target="fffffff:ffff:ff" count="3" tclass="0x068000"/></gpu>)") +
             gpu("02:00.0", R"(<gpu><nvlink target="0000:c1:00.0" count="5" tclass="0x068000"/></gpu>)")));
  ASSERT_EQ(found.nodes.size(), 4U);
  EXPECT_EQ(found.nodes[3].kind, TopologyKind::nvswitch);
  EXPECT_EQ(found.nodes[3].parent, kNoNode);
  EXPECT_EQ(found.nvlinks, (std::vector<NvLinks>{{1, 3, 5}, {2, 3, 5}, {3, 1, 5}, {3, 2, 5}}));

  const Topology with_switches = host(system(
      gpu("01:00.0", R"(<gpu><nvlink target="c1:00.0" tclass="0x068000"/><nvlink target="c2:00.0"/></gpu>)") +
      R"(<pci busid="c1:00.0" class="0x068000" vendor="0x10de"/><pci busid="c2:00.0" class="0x068000"/>)"));
  EXPECT_EQ(with_switches.nvlinks, (std::vector<NvLinks>{{1, 2, 2}, {2, 1, 2}}));
}

TEST(NcclXml, NvLinksThatEndNowhereAreLeftOut) {
  const TopologyFile file =
      read(system(gpu("01:00.0",
                      "<gpu>\n<nvlink target=\"0000:01:00.0\" count=\"12\" tclass=\"0x030200\"/>\n"
                      "<nvlink target=\"0000:09:00.0\"/>\n<nvlink target=\"x\"/>\n<nvlink/>\n"
                      R"(<nvlink target="0000:02:00.0" count="0"/></gpu>)") +
                  gpu("02:00.0")));
  EXPECT_TRUE(file.hosts.at(0).nvlinks.empty());
  EXPECT_EQ(file.remarks,
            (std::vector<std::string>{"line 4: an <nvlink> to 0000:01:00.0, which is the GPU itself",
                                      "line 5: an <nvlink> to 0000:09:00.0, which is not here",
                                      "line 6: an <nvlink> to x, which is not here",
                                      "line 7: an <nvlink> to , which is not here",
                                      "line 8: an <nvlink> of count 0"}));
}

TEST(NcclXml, AnNvLinkIsSeenFromBothEnds) {
  const TopologyFile file =
      read(system(gpu("01:00.0", R"(<gpu><nvlink target="02:00.0" count="3"/></gpu>)") + gpu("02:00.0")));
  EXPECT_EQ(file.hosts.at(0).nvlinks, (std::vector<NvLinks>{{1, 2, 3}, {2, 1, 3}}));
  EXPECT_EQ(file.remarks, (std::vector<std::string>{
                              "line 1: NVLinks from GPU 1 (0000:02:00.0) to GPU 0 (0000:01:00.0) are not "
                              "listed, but the reverse"}));
}

TEST(NcclXml, CpusByCoherentLinks) {
  const Topology found = host(system(gpu("01:00.0", R"(<gpu sm="90"><c2c bw="44712" count="10"/></gpu>)") +
                                     gpu("02:00.0", R"(<gpu><nvlink count="3" tclass="0x068001"/></gpu>)")));
  EXPECT_EQ(found.nvlinks,
            (std::vector<NvLinks>{
                {0, 1, 10, 44.712, true}, {0, 2, 3, 0, true}, {1, 0, 10, 44.712, true}, {2, 0, 3, 0, true}}));
}

TEST(NcclXml, LinksBetweenSwitches) {
  const TopologyFile file = read(system(R"(
<pci busid="01:00.0" class="0x060400"><pcilink target="0000:02:00.0"/><pcilink target="0000:07:00.0"/></pci>
<pci busid="02:00.0" class="0x060400"><pcilink target="0000:01:00.0"/></pci>)"));
  EXPECT_EQ(file.hosts.at(0).peer_switches, (std::vector<PeerSwitches>{{1, 2}}));
  EXPECT_EQ(file.remarks,
            (std::vector<std::string>{"line 4: <pcilink> to 0000:07:00.0, which is no other bridge here"}));
}

TEST(NcclXml, HostsAreToldByTheirHash) {
  const TopologyFile file = read(R"(<system version="1">
<cpu host_hash="0x1" numaid="0"><pci busid="01:00.0" class="0x030200"/></cpu>
<cpu host_hash="0x2" numaid="0"><pci busid="01:00.0" class="0x030200"/></cpu>
<cpu host_hash="0x1" numaid="1"><pci busid="02:00.0" class="0x030200"/></cpu>
</system>)");
  ASSERT_EQ(file.hosts.size(), 2U);
  EXPECT_EQ(file.hosts[0].all(TopologyKind::gpu).size(), 2U);
  EXPECT_EQ(file.hosts[1].all(TopologyKind::gpu).size(), 1U);
}

TEST(NcclXml, WhatIsNotKnownIsRemarked) {
  const TopologyFile file =
      read(system(R"(<pci busid="01:00.0" class="0x030200" colour="blue" link_width="255">)"
                  "<gpu keep=\"1\"/><fan/></pci>\n<disk/>\n"));
  EXPECT_EQ(file.remarks,
            (std::vector<std::string>{
                R"(line 3: attribute "colour" of <pci> is ignored)", "line 3: 255 lanes: taken as unknown",
                "line 3: <fan> in <pci> is ignored", "line 4: <disk> in <cpu> is ignored"}));
  std::string many;
  for (int i = 0; i < 150; ++i) many += "<disk/>";
  EXPECT_EQ(read(system(many)).remarks.size(), 101U);
  EXPECT_EQ(read(system(many)).remarks.back(), "and 50 more");
}

TEST(NcclXml, RanksAndPortsThatAreThereTwiceAreRemarked) {
  const TopologyFile file = read(system(gpu("01:00.0", R"(<gpu dev="0" rank="3"/>)") +
                                        gpu("02:00.0", R"(<gpu dev="1" rank="3"/>)") +
                                        "<nic><net dev=\"0\"/>\n<net dev=\"0\"/></nic>"));
  EXPECT_EQ(file.remarks, (std::vector<std::string>{"line 4: rank 3 of <gpu> is in line 3, too",
                                                    "line 6: dev 0 of <net> is in line 5, too"}));
}

/// A terminal would obey them, and XML cannot hold them.
TEST(NcclXml, NamesAreKeptFreeOfControlCharacters) {
  const TopologyFile file =
      read(system("<nic><net name=\"a&#27;[31mb\xc2\x9b"
                  "c\xff&#xFFFE;&#10;\xc3\xbc\"/></nic>"));
  const std::vector<int> ports = file.hosts[0].all(TopologyKind::net);
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(file.hosts[0].nodes[static_cast<std::size_t>(ports[0])].net.name, "a?[31mb?c?? \xc3\xbc");
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_NE(file.remarks[0].find("line 3: attribute \"name\" of <net> has characters"), std::string::npos);
  Topology host = file.hosts[0];
  host.unseen = {"a \x1b"};
  host.nodes[static_cast<std::size_t>(ports[0])].net.name = "\x01";
  const std::string written = writeNcclXml({host});
  EXPECT_EQ(std::ranges::count_if(written, [](char c) { return c > 0 && c < ' ' && c != '\n'; }), 0)
      << written;
  EXPECT_EQ(written.find("&#"), std::string::npos) << written;
  EXPECT_EQ(errorOf("<system", "f\x1b[2J").substr(0, 6), "f?[2J:");
}

TEST(NcclXml, WrongFilesAreRefusedWithLineAndReason) {
  const struct {
    std::string text, error;
  } cases[] = {
      {"", "f:1: no XML: it holds no element"},
      {"hello", "f:1: no XML: it holds no element"},
      {std::string("<system version=\"1\">\n\0</system>", 31), "f:2: a zero byte: no XML in UTF-8"},
      {"<system version=\"1\">\n<cpu>\n",
       "f:2: no XML: Start-end tags mismatch, at the end of the file, as if it were truncated"},
      {"<system version=\"1\">\n<cpu numaid=\"0",
       "f:2: no XML: Error parsing element attribute, at the end of the file, as if it were truncated"},
      {"<system>\n<cpu>\n</system>", "f:3: no XML: Start-end tags mismatch"},
      {"<system/>\n<system/>", "f:2: a second element at the top"},
      {"<system version=\"1\"><cpu/></system>\nrest", "f:2: no XML: text outside of <system>: \"rest\""},
      {system(gpu("01:00.0", "<gpu dev=\"0\"/>") + gpu("02:00.0", "<gpu dev=\"0\"/>")),
       "f:4: GPU 0 is in line 3 already"},
      {"<" + std::string(100, 'x') + "/>", "f:1: <" + std::string(60, 'x') + "...>, expected <system>"},
      {"\n<topology/>", "f:2: <topology>, expected <system>"},
      {R"(<system version="2"/>)",
       R"(f:1: attribute "version" of <system> is "2", expected 1, the only one there is)"},
      {R"(<system version="1"/>)", "f:1: no <cpu>, so no host"},
      {"<system><cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>", "f:2: NUMA node 0 is in line 1 already"},
      {R"(<system><cpu numaid="0" numaid="1"/></system>)", R"(f:1: <cpu> has "numaid" twice)"},
      {R"(<system><cpu numaid="zero"/></system>)",
       R"(f:1: attribute "numaid" of <cpu> is "zero", expected a whole number from -1 to 1048576)"},
      {R"(<system><cpu affinity="xyz"/></system>)",
       R"(f:1: attribute "affinity" of <cpu> is "xyz", expected words in base 16, such as )"
       "000000ff,ffff0000"},
      {R"(<system><cpu host_hash="-"/></system>)",
       R"(f:1: attribute "host_hash" of <cpu> is "-", expected a number of 64 bits, such as 0x5a)"},
      {system("<pci/>"), R"(f:3: attribute "busid" of <pci> is "", expected a bus id such as 0000:3b:00.0)"},
      {system("\n" + gpu("01:00.0") + gpu("0000:01:00.0")),
       "f:5: the bus id 0000:01:00.0 is there twice on one host"},
      {system(R"(<pci busid="01:00.0" class="0x1030200"/>)"),
       R"(f:3: attribute "class" of <pci> is "0x1030200", expected a whole number from 0 to 16777215)"},
      {system(R"(<pci busid="01:00.0" link_speed="fast"/>)"),
       R"(f:3: attribute "link_speed" of <pci> is "fast", expected a speed such as "16.0 GT/s PCIe")"},
      {system(R"(<pci busid="01:00.0" link_width="x16"/>)"),
       R"(f:3: attribute "link_width" of <pci> is "x16", expected a whole number from 0 to 255)"},
      {system(gpu("01:00.0", R"(<gpu sm="9999999999999999999999"/>)")),
       R"(f:3: attribute "sm" of <gpu> is "9999999999999999999999", expected a whole number from 0 to 999)"},
      {system(R"(<nic><net speed="nan"/></nic>)"),
       R"(f:3: attribute "speed" of <net> is "nan", expected a number from 0 to 1000000000)"},
      {system("<cache cpus=\"0-1\"/>\n<cache cpus=\"1-2\"/>"),
       "f:4: a cache of CPUs that the NUMA node has not, or that another cache has"},
      {system(gpu("01:00.0",
                  "<gpu><nvlink target=\"02:00.0\" count=\"200\"/>\n<nvlink target=\"02:00.0\" "
                  R"(count="56"/></gpu>)") +
              gpu("02:00.0")),
       "f:4: more than 255 links to one device"},
  };
  for (const auto& wrong : cases) EXPECT_EQ(errorOf(wrong.text), wrong.error) << wrong.text;
}

TEST(NcclXml, DepthIsLimited) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += R"(<pci busid=")" + fmt::format("{:x}:01:00.0", i) + R"(">)";
  for (int i = 0; i < 100000; ++i) text += "</pci>";
  EXPECT_EQ(errorOf(system(text)), "f:3: more than 64 <pci> in each other");
}

TEST(NcclXml, LargeFilesAreRead) {
  std::string text;
  for (int i = 0; i < 100000; ++i) {
    text += gpu(fmt::format("{:x}:01:00.0", i),
                i == 0 ? "" : fmt::format(R"(<gpu><nvlink target="{:x}:01:00.0"/></gpu>)", i - 1));
  }
  EXPECT_EQ(host(system(text)).nvlinks.size(), 199998U);
}

TEST(NcclXml, WhatIsWrittenIsReadBack) {
  std::vector<Topology> hosts = {test::dgxLike(), test::nvlinkMesh4(), test::cubeMesh8(), test::pcieOnly4(),
                                 test::laptop()};
  TopologyNode& node = hosts[0].nodes[2];
  node.gpu.model = R"(A "100" <&>)";
  node.gpu.rank = 7;
  node.link = {2.5, 4, 16, 16};
  hosts[0].nvlinks[0].gbytes_per_s = hosts[0].nvlinks[1].gbytes_per_s = 12.345;
  hosts[2].peer_switches = {{1, 6}};
  hosts[4].nodes[0].cpu.caches = {{0, 2, 3}, {1, 7}};
  for (Topology& topology : hosts) {
    ASSERT_NO_THROW(validate(topology));
    std::ranges::sort(topology.nvlinks, {},
                      [](const NvLinks& links) { return std::pair(links.from, links.to); });
    const TopologyFile file = read(writeNcclXml({topology}));
    EXPECT_EQ(file.remarks, std::vector<std::string>());
    ASSERT_EQ(file.hosts.size(), 1U);
    EXPECT_EQ(file.hosts[0], topology) << writeNcclXml({topology});
  }
  EXPECT_EQ(read(writeNcclXml(hosts)).hosts, hosts);
}

TEST(NcclXml, WritesAsNcclDoes) {
  test::HostBuilder builder;
  const int numa = builder.numaNode("AuthenticAMD", 23, 49, 8);
  const int first = builder.gpu(numa, test::kGen4x16, 80);
  builder.nvlinks(first, builder.gpu(numa, test::kGen3x16, 80), 4);
  builder.nic(numa, test::kGen4x16, 200000);
  builder.topology.unseen = {"PCI devices -- not shown"};
  EXPECT_EQ(writeNcclXml({builder.topology}), R"(<system version="1">
  <!-- not seen: PCI devices  - not shown -->
  <cpu numaid="0" affinity="000000ff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49" package="0">
    <cache cpus="0-7" />
    <pci busid="0000:01:00.0" class="0x030200" vendor="0x10de" device="0x0000" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="-1" gdr="1">
        <nvlink target="0000:02:00.0" count="4" tclass="0x030200" />
      </gpu>
    </pci>
    <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x0000" link_speed="8.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="-1" gdr="1">
        <nvlink target="0000:01:00.0" count="4" tclass="0x030200" />
      </gpu>
    </pci>
    <pci busid="0000:03:00.0" class="0x020700" vendor="0x15b3" device="0x0000" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic>
        <net name="mlx5_0" dev="0" speed="200000" port="1" latency="0" guid="0x100" maxconn="65536" gdr="1" coll="0" />
      </nic>
    </pci>
  </cpu>
</system>
)");
  // Half an identity is no unknown one.
  builder.topology.unseen.clear();
  TopologyNode& gpu = builder.topology.nodes[static_cast<std::size_t>(first)];
  gpu.pci = {.device_class = 0x030200, .device = 0x2330, .subsystem_device = 0x16c1};
  EXPECT_EQ(readNcclXml(writeNcclXml({builder.topology}), "written").hosts.front().nodes,
            builder.topology.nodes);
  EXPECT_THROW(writeNcclXml({Topology()}), std::invalid_argument);
}

}  // namespace
}  // namespace tutti
