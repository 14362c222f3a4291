// tutti-topo as its users run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/topology/graph_xml.h"
#include "runtime/topology/hwloc_xml.h"
#include "runtime/topology/nccl_xml.h"
#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"
#include "tests/topology/builders.h"

namespace tutti::test {
namespace {

using nlohmann::json;

const std::string kRoot = TUTTI_SOURCE_DIR "/";
const std::string kData = kRoot + "tests/topology/data/";

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

CommandResult topo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tutti-topo");
  return runCommand(std::move(arguments));
}

/// Files list NVLinks by their ends.
Topology inOrder(Topology topology) {
  std::ranges::sort(topology.nvlinks, {},
                    [](const NvLinks& links) { return std::pair(links.from, links.to); });
  return topology;
}

TEST(Topo, TheInputsAreTheHostsThatTestsBuild) {
  const std::pair<const char*, Topology> inputs[] = {{"dgx", dgxLike()},
                                                     {"nvlink_mesh", nvlinkMesh4()},
                                                     {"cube_mesh", cubeMesh8()},
                                                     {"pcie", pcieOnly4()},
                                                     {"laptop", laptop()}};
  for (const auto& [name, built] : inputs) {
    const TopologyFile file = readTopologyFile(kData + name + ".xml");
    ASSERT_EQ(file.hosts.size(), 1) << name;
    EXPECT_TRUE(inOrder(file.hosts.front()) == inOrder(built)) << name;
  }
}

TEST(Topo, MakesTheFilesOfTheTree) {
  std::istringstream list(contentOf(kData + "made.txt"));
  int count = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string file;
    words >> file;
    std::vector<std::string> arguments;
    for (std::string word; words >> word;)
      arguments.push_back(word.starts_with("tests/") ? kRoot + word : word);
    EXPECT_EQ(topo(arguments).out, contentOf(kRoot + file)) << file << ": see tests/topology/remake";
    ++count;
  }
  EXPECT_GT(count, 10);
}

TEST(Topo, WritesTheXmlThatItReads) {
  for (const char* name : {"dgx", "nvlink_mesh", "cube_mesh", "pcie", "laptop"}) {
    const std::string path = kData + name + ".xml";
    EXPECT_EQ(topo({"--input", path, "--format", "xml"}).out, contentOf(path)) << name;
  }
}

TEST(Topo, WritesGraphFiles) {
  const CommandResult result = topo({"--input", kData + "dgx.xml", "--format", "xml", "--rings", "--trees"});
  const Topology host = dgxLike();
  const std::vector<ChannelGraph> graphs =
      readGraphXml(result.out, "graph.xml", host, host.all(TopologyKind::gpu));
  ASSERT_EQ(graphs.size(), 2) << result.err;
  EXPECT_EQ(graphs[0].pattern, ChannelPattern::ring);
  EXPECT_FALSE(graphs[0].channels.empty());
}

TEST(Topo, TakesTheChannelsOfAGraphFile) {
  const ScratchDirectory scratch;
  const std::string reversed = scratch.write(
      "graph.xml",
      R"(<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="6" speedinter="6" )"
      R"(latencyinter="0" typeintra="SYS" typeinter="PIX" samechannels="1"><channel>)"
      R"(<gpu dev="3" rank="3"/><gpu dev="2" rank="2"/><gpu dev="1" rank="1"/><gpu dev="0" rank="0"/>)"
      R"(</channel></graph></graphs>)");
  const CommandResult result = topo({"--input", kData + "pcie.xml", "--graph", reversed, "--rings"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("1 channel, each 6 GB/s"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("channel 0: GPU 3 > GPU 2 > GPU 1 > GPU 0 > GPU 3"), std::string::npos)
      << result.out;

  const CommandResult wrong = topo({"--input", kData + "dgx.xml", "--graph", reversed, "--rings"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("graph.xml:1: "), std::string::npos) << wrong.err;
  const CommandResult several =
      topo({"--input", kData + "pcie.xml", "--input", kData + "worn.xml", "--graph", reversed, "--rings"});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_NE(several.err.find("hosts of one shape"), std::string::npos) << several.err;
  EXPECT_EQ(topo({"--input", kData + "pcie.xml", "--graph", "/nowhere/graph.xml"}).exit_code, 2);
}

TEST(Topo, JsonHoldsAllSections) {
  const CommandResult result = topo({"--input", kData + "pcie.xml", "--hosts", "3", "--format", "json"});
  const json document = json::parse(result.out, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << result.err;
  EXPECT_EQ(document.at("format"), 1);
  EXPECT_EQ(document.at("hosts").size(), 3);
  EXPECT_EQ(document.at("hosts").at(2), (json{{"name", "pcie-2"}, {"shape", 0}, {"ranks", {8, 9, 10, 11}}}));
  ASSERT_EQ(document.at("shapes").size(), 1);
  const json& shape = document.at("shapes").at(0);
  EXPECT_EQ(shape.at("nodes").size(), pcieOnly4().nodes.size());
  EXPECT_EQ(shape.at("seats").size(), 4);
  EXPECT_EQ(shape.at("matrix").at("classes").at(0).at(1), "PIX");
  EXPECT_EQ(shape.at("matrix").at("classes").at(0).at(2), "SYS");
  EXPECT_EQ(document.at("channels").at(0).at("ring").size(), 12);
  EXPECT_EQ(document.at("channels").at(0).at("trees").at(1).size(), 12);
  EXPECT_EQ(document.at("bandwidth").size(), 8);
  EXPECT_FALSE(document.at("findings").empty());
}

TEST(Topo, CheckAndCompareEndWithOneWhereThereIsSomething) {
  EXPECT_EQ(topo({"--input", kData + "dgx.xml", "--check"}).exit_code, 0);
  EXPECT_EQ(topo({"--input", kData + "worn.xml", "--check"}).exit_code, 1);
  EXPECT_EQ(topo({"--input", kData + "worn.xml"}).exit_code, 0);
  const CommandResult same = topo({"--compare", kData + "pcie.xml", kData + "pcie.xml"});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_EQ(same.out, "pcie and pcie are alike.\n");
  const CommandResult differs =
      topo({"--compare", kData + "pcie.xml", kData + "worn.xml", "--format", "json"});
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_EQ(json::parse(differs.out).at("differences").size(), 4);
}

TEST(Topo, ShowsThisMachine) {
  const CommandResult text = topo({});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("NUMA node"), std::string::npos) << text.out;
  for (const char* format : {"json", "dot", "svg", "xml"}) {
    const CommandResult result = topo({"--format", format});
    EXPECT_EQ(result.exit_code, 0) << format << ": " << result.err;
    EXPECT_FALSE(result.out.empty()) << format;
  }
  // What is written of it is read to the same picture of it.
  const ScratchDirectory scratch;
  const std::string dump = scratch.path() + "/dump.xml";
  EXPECT_EQ(topo({"--format", "xml", "--output", dump}).exit_code, 0);
  EXPECT_EQ(readNcclXml(topo({"--format", "xml"}).out, "again").hosts, readTopologyFile(dump).hosts);
}

TEST(Topo, AssumesNvlinksThatAFileLeavesOut) {
  const CommandResult result =
      topo({"--input", kData + "pcie.xml", "--assume-nvlink", "0-1:4,2-3:2", "--matrix"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("GPU0     X   NV4"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("GPU3   SYS   SYS   NV2     X"), std::string::npos) << result.out;
}

struct Refused {
  std::vector<std::string> arguments;
  std::string words;
};

TEST(Topo, RefusesInWords) {
  const std::string pcie = kData + "pcie.xml";
  const ScratchDirectory scratch;
  const std::string no_rings = scratch.write(
      "no_rings.xml",
      R"(<graphs version="1"><graph id="1" pattern="1" nchannels="0" speedintra="20"/></graphs>)");
  const std::vector<Refused> cases = {
      {{"--hosts", "0"}, "--hosts"},
      {{"--format", "png"}, "png"},
      {{"--cross-nic", "3"}, "--cross-nic"},
      {{"--p2p-level", "FAR"},
       "--p2p-level FAR: expected LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS"},
      {{"--graph", ""}, "--graph: is empty"},
      {{"--output", ""}, "--output: is empty"},
      {{"--input", ""}, "--input: is empty"},
      {{"--p2p-level", ""}, "--p2p-level: is empty"},
      {{"--assume-nvlink", ""}, "--assume-nvlink: is empty"},
      {{"--combine-speed", "nan"}, "--combine-speed: nan: expected a number of more than 0"},
      {{"--copy-speed", "inf"}, "--copy-speed: inf: expected a number of more than 0"},
      {{"--input", pcie, "--graph", pcie, "--channels", "2"}, "leave --channels out"},
      {{"--input", pcie, "--hosts", "257"}, "1028 ranks on 257 hosts: a communicator has 1024 at most"},
      {{"--input", pcie, "--graph", "/nowhere/graph.xml"},
       "/nowhere/graph.xml: cannot be opened: No such file or directory"},
      {{"--input", pcie, "--graph", "/dev/zero"}, "/dev/zero:1: larger than 64 MiB"},
      {{"--input", pcie, "--graph", "/"}, "/: is a directory"},
      {{"--input", pcie, "--graph", no_rings, "--trees"}, "no_rings.xml has no rings (pattern 4)"},
      {{"--compare", pcie}, "--compare"},
      {{"--compare", pcie, pcie, "--matrix"},
       "--compare takes its two files and no --input, --hosts or section"},
      {{"--compare", pcie, pcie, "--format", "svg"}, "--compare has the formats text and json"},
      {{"--input", pcie, "--format", "svg", "--rings"}, "a picture has no sections"},
      {{"--input", pcie, "--format", "xml", "--check"}, "--format xml holds the topology"},
      {{"--input", pcie, "--ranks", "5"}, "--ranks 5: pcie has 4 GPUs only; there is one rank per GPU"},
      {{"--input", pcie, "--assume-nvlink", "0-9:4"}, "--assume-nvlink: pcie has no GPU 9; it has 4 GPUs"},
      {{"--input", kData + "none.xml"}, "none.xml: cannot be opened: No such file or directory"},
      {{"--input", kData + "made.txt"}, "made.txt:1: "},
      {{"--input", pcie, "--output", "/nowhere/file"},
       "/nowhere/file cannot be written: No such file or directory"},
      {{"--bandwidth", "--combine-speed", "-3"}, "--combine-speed"},
      {{"stray"}, "stray (files go behind --input)"},
  };
  for (const Refused& refused : cases) {
    const CommandResult result = topo(refused.arguments);
    EXPECT_EQ(result.exit_code, 2) << refused.words << result.out;
    EXPECT_EQ(result.out, "") << refused.words;
    EXPECT_NE(result.err.find(refused.words), std::string::npos)
        << refused.words << " expected, got: " << result.err;
    EXPECT_TRUE(result.err.starts_with("tutti-topo: ")) << result.err;
  }
}

TEST(Topo, TellsHowMuchOfAFileItIgnores) {
  const ScratchDirectory scratch;
  const std::string path =
      scratch.write("odd\x1b[31m.xml", R"(<system version="1"><cpu numaid="0"><disk/><fan/></cpu></system>)");
  const CommandResult shown = topo({"--input", path});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.err.find("tutti-topo: 2 remarks on "), std::string::npos) << shown.err;
  EXPECT_TRUE(shown.out.starts_with("odd?[31m: ")) << shown.out;
  EXPECT_EQ(shown.err.find('\x1b'), std::string::npos) << shown.err;
  EXPECT_EQ(topo({"--input", path, "--check"}).err, "");
}

TEST(Topo, SaysWhenItsOutputIsLost) {
  EXPECT_EQ(topo({"--input", kData + "pcie.xml", "--output", "/dev/full"}).exit_code, 2);
}

}  // namespace
}  // namespace tutti::test
