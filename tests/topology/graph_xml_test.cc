#include "runtime/topology/graph_xml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/topology/file_error.h"
#include "tests/topology/builders.h"

namespace tutti {
namespace {

/// Two GPUs, numbered 7 and 3, and two ports, numbered 0 and 1.
class GraphXml : public ::testing::Test {
 protected:
  GraphXml() {
    test::HostBuilder builder;
    const int numa = builder.numaNode("AuthenticAMD", 25, 1);
    seats_ = {builder.gpu(numa, test::kGen4x16, 80), builder.gpu(numa, test::kGen4x16, 80)};
    ports_ = {builder.nic(numa, test::kGen4x16, 200000), builder.nic(numa, test::kGen4x16, 200000)};
    builder.topology.nodes[static_cast<std::size_t>(seats_[0])].gpu.device = 7;
    builder.topology.nodes[static_cast<std::size_t>(seats_[1])].gpu.device = 3;
    topology_ = std::move(builder.topology);
  }

  std::vector<ChannelGraph> read(const std::string& text) const {
    return readGraphXml(text, "g", topology_, seats_);
  }
  std::string errorOf(const std::string& text) const {
    try {
      read(text);
    } catch (const FileError& error) {
      return error.what();
    }
    return "none";
  }
  std::string errorOfChannel(const std::string& inside) const {
    return errorOf("<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\">\n<channel>" + inside +
                   "</channel></graph></graphs>");
  }

  Topology topology_;
  std::vector<int> seats_;
  std::vector<int> ports_;
};

TEST_F(GraphXml, EverythingIsRead) {
  const auto graphs = read(R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="1" nchannels="2" speedintra="20.5" speedinter="12" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel><net dev="1"/><gpu dev="3" rank="1"/><gpu dev="7" rank="0"/><net dev="0"/></channel>
    <channel><net dev="0"/><gpu dev="7" rank="0"/><gpu dev="3" rank="1"/><net dev="0"/></channel>
  </graph>
  <graph id="1" pattern="3" speedintra="3"><channel><gpu dev="7"/><gpu dev="3"/></channel></graph>
  <graph id="2" pattern="3"><channel><gpu dev="99"/></channel></graph>
  <graph id="3" pattern="5"><channel/></graph>
</graphs>)");
  ASSERT_EQ(graphs.size(), 2U);
  ChannelGraph ring;
  ring.pattern = ChannelPattern::ring;
  ring.channels = {{ports_[1], ports_[0], {1, 0}}, {ports_[0], ports_[0], {0, 1}}};
  ring.intra_gbytes_per_s = 20.5;
  ring.inter_gbytes_per_s = 12;
  ring.intra_class = PathClass::nvl;
  ring.inter_class = PathClass::pix;
  ring.crosses_nics = true;
  ring.same_channels = false;
  EXPECT_EQ(graphs[0], ring);
  EXPECT_EQ(graphs[1].pattern, ChannelPattern::tree);
  EXPECT_EQ(graphs[1].channels, (std::vector<HostChannel>{{kNoNode, kNoNode, {0, 1}}}));
  EXPECT_EQ(graphs[1].intra_class, PathClass::sys);
}

TEST_F(GraphXml, NumbersOfNewerVersionsAreReadAndWritten) {
  // In base 16, hosts that share NVLinks in the top byte.
  topology_.nodes[static_cast<std::size_t>(seats_[0])].gpu.device = 18;
  const auto graphs = read(R"(<graphs><graph id="0" pattern="4"><channel><net dev="0x100000000000001"/>)"
                           R"(<gpu dev="0x12"/><gpu dev="0x3"/><net dev="0x0"/></channel></graph></graphs>)");
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(graphs[0].channels, (std::vector<HostChannel>{{ports_[1], ports_[0], {0, 1}}}));
  const std::string written = writeGraphXml(graphs, topology_, seats_);
  EXPECT_NE(written.find(R"(<gpu dev="0x12" />)"), std::string::npos) << written;
  EXPECT_NE(written.find(R"(<gpu dev="3" />)"), std::string::npos) << written;
}

TEST_F(GraphXml, WhatIsLeftOutIsTold) {
  std::vector<std::string> remarks;
  const auto graphs = readGraphXml(
      "<graphs><grap/>\n<graph id=\"0\" pattern=\"4\" nchannels=\"0\" colour=\"1\"><chanel/>\n</graph>"
      "<graph id=\"1\" pattern=\"1\">\n<channel><gpu dev=\"7\" to=\"3\"/><gpu "
      "dev=\"3\"/><nett/></channel></graph></graphs>",
      "g", topology_, seats_, false, &remarks);
  ASSERT_EQ(graphs.size(), 1U) << "rings without channels are none";
  EXPECT_EQ(graphs[0].pattern, ChannelPattern::balanced_tree);
  std::string all;
  for (const std::string& remark : remarks) all += remark + "\n";
  for (const char* const told :
       {"line 1: ", "grap", "line 2: ", "colour", "chanel", "line 4: ", "\"to\"", "nett"})
    EXPECT_NE(all.find(told), std::string::npos) << told << " is not in " << all;
}

TEST_F(GraphXml, WhatIsWrittenIsReadBack) {
  ChannelGraph tree;
  tree.pattern = ChannelPattern::balanced_tree;
  tree.channels = {{ports_[1], ports_[0], {1, 0}}, {kNoNode, kNoNode, {0, 1}}};
  tree.intra_gbytes_per_s = 0.1;
  tree.was_cut_short = true;
  ChannelGraph ring = tree;
  ring.pattern = ChannelPattern::ring;
  ring.inter_class = PathClass::phb;
  EXPECT_EQ(read(writeGraphXml({ring, tree}, topology_, seats_)), (std::vector<ChannelGraph>{ring, tree}));
  EXPECT_EQ(writeGraphXml({tree}, topology_, seats_), R"(<graphs version="1">
  <graph id="1" pattern="1" crossnic="0" nchannels="2" speedintra="0.1" speedinter="0" latencyinter="0" typeintra="DIS" typeinter="DIS" samechannels="1" cutshort="1">
    <channel>
      <net dev="1" />
      <gpu dev="3" />
      <gpu dev="7" />
      <net dev="0" />
    </channel>
    <channel>
      <gpu dev="7" />
      <gpu dev="3" />
    </channel>
  </graph>
</graphs>
)");
}

TEST_F(GraphXml, SeatsWithoutNumbersOfTheirOwnGoByPlace) {
  const std::vector<int> numa_seats = {0, 0, 0};
  const auto graphs = readGraphXml(
      R"(<graphs><graph id="0" pattern="4"><channel><gpu dev="2"/><gpu dev="0"/><gpu dev="1"/></channel></graph></graphs>)",
      "g", topology_, numa_seats);
  EXPECT_EQ(graphs.at(0).channels.at(0).order, (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(readGraphXml(writeGraphXml(graphs, topology_, numa_seats), "g", topology_, numa_seats), graphs);
}

// Seats that are no GPUs are ranks.
TEST_F(GraphXml, RanksInHostMemoryAreCalledSo) {
  const auto errorFor = [&](const char* channel) -> std::string {
    try {
      readGraphXml(
          fmt::format(R"(<graphs><graph id="0" pattern="4"><channel>{}</channel></graph></graphs>)", channel),
          "g", topology_, {0, 0});
    } catch (const FileError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(errorFor(R"(<gpu dev="0"/>)"), "g:1: the channel leaves out rank 1");
  EXPECT_EQ(
      errorFor(R"(<gpu dev="2"/>)"),
      R"(g:1: attribute "dev" of <gpu> is "2", expected the number of one of the 2 ranks of this host)");
}

TEST_F(GraphXml, AmongSeveralHostsChannelsHavePorts) {
  const std::string without =
      "<graphs><graph id=\"0\" pattern=\"4\">\n<channel><gpu dev=\"3\"/><gpu "
      "dev=\"7\"/></channel></graph></graphs>";
  EXPECT_EQ(readGraphXml(without, "g", topology_, seats_).size(), 1U);
  try {
    readGraphXml(without, "g", topology_, seats_, true);
    ADD_FAILURE() << "accepted";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(),
                 "g:2: the channel has no <net>, and there are several hosts: the file was written for one");
  }
}

TEST_F(GraphXml, WrongFilesAreRefusedWithLineAndReason) {
  EXPECT_EQ(errorOf("<system/>"), "g:1: <system>, expected <graphs>");
  EXPECT_EQ(errorOf(R"(<graphs version="3"/>)"),
            R"(g:1: attribute "version" of <graphs> is "3", expected 1, the only one there is)");
  EXPECT_EQ(errorOf(R"(<graphs><graph pattern="4"/></graphs>)"),
            R"(g:1: attribute "id" of <graph> is "", expected 0 for rings or 1 for trees)");
  EXPECT_EQ(errorOf(R"(<graphs><graph id="0"/></graphs>)"),
            R"(g:1: attribute "pattern" of <graph> is "", expected 1 to 4)");
  EXPECT_EQ(errorOf(R"(<graphs><graph id="0" pattern="1"/></graphs>)"),
            R"(g:1: attribute "pattern" of <graph> is "1", expected 4 (ring) for id 0)");
  EXPECT_EQ(errorOf("<graphs><graph id=\"0\" pattern=\"4\"/>\n<graph id=\"0\" pattern=\"4\"/></graphs>"),
            "g:2: a second graph of id 0");
  EXPECT_EQ(errorOf(R"(<graphs><graph id="0" pattern="4" typeintra="FAST"/></graphs>)"),
            R"(g:1: attribute "typeintra" of <graph> is "FAST", expected a class of paths such as NVL, PIX )"
            "or SYS");
  EXPECT_EQ(errorOf(R"(<graphs><graph id="0" pattern="4" nchannels="1"/></graphs>)"),
            R"(g:1: attribute "nchannels" of <graph> is "1", expected 0, as many as there are)");
  EXPECT_EQ(errorOf(R"(<graphs><graph id="0" pattern="4" speedintra="0"/></graphs>)"),
            R"(g:1: attribute "speedintra" of <graph> is "0", expected more than 0)");
  EXPECT_EQ(errorOf(R"(<graphs><graph id="0" pattern="4" latencyinter="abc"/></graphs>)"),
            R"(g:1: attribute "latencyinter" of <graph> is "abc", expected a number from 0 to 1000000)");
  EXPECT_EQ(
      errorOfChannel(R"(<gpu dev="3" rank="zzz"/>)"),
      R"(g:3: attribute "rank" of <gpu> is "zzz", expected a whole number from -2147483648 to 2147483647)");
  EXPECT_EQ(errorOfChannel(R"(<gpu dev="3"/>)"), "g:3: the channel leaves out GPU 7");
  EXPECT_EQ(errorOfChannel("<gpu dev=\"3\"/>\n<gpu dev=\"3\"/>"), "g:4: the channel visits GPU 3 twice");
  EXPECT_EQ(errorOfChannel(R"(<gpu dev="0"/>)"),
            R"(g:3: attribute "dev" of <gpu> is "0", expected the number of one of the 2 GPUs of this host)");
  EXPECT_EQ(errorOfChannel("<gpu/>"),
            R"(g:3: attribute "dev" of <gpu> is "", expected the number of one of the 2 GPUs of this host)");
  EXPECT_EQ(
      errorOfChannel(R"(<net dev="2"/>)"),
      R"(g:3: attribute "dev" of <net> is "2", expected the number of one of the 2 ports of this host)");
  EXPECT_EQ(errorOfChannel(R"(<net dev="0"/><gpu dev="3"/><gpu dev="7"/>)"),
            "g:3: a port at one end of the channel only");
  EXPECT_EQ(errorOfChannel(R"(<net dev="0"/><net dev="0"/>)"),
            "g:3: a second port at one end of the channel");
  EXPECT_EQ(errorOfChannel(R"(<net dev="0"/><gpu dev="3"/><net dev="0"/><gpu dev="7"/>)"),
            "g:3: a GPU after the port that the channel leaves by");
}

}  // namespace
}  // namespace tutti
