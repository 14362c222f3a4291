#include "tests/topology/fuzz/properties.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "runtime/topology/file_error.h"
#include "runtime/topology/graph_xml.h"
#include "runtime/topology/hwloc_xml.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/prediction.h"
#include "tests/topology/builders.h"

namespace tutti::test {
namespace {

constexpr std::size_t kMostNodesForPaths = 48;
const std::string kName = "file";

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

/// "file:12: reason".
void checkMessage(const FileError& error) {
  const std::string text = error.what();
  const std::size_t digits = kName.size() + 1;
  const std::size_t end = text.find_first_not_of("0123456789", digits);
  require(text.compare(0, digits, kName + ":") == 0 && end > digits && text.compare(end, 2, ": ") == 0 &&
              text.size() > end + 2 && text[digits] != '0',
          "an error without line and reason: " + text);
}

void checkPaths(const Topology& host) {
  if (host.nodes.size() > kMostNodesForPaths) return;
  const TopologyPaths paths(host);
  const int size = static_cast<int>(host.nodes.size());
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      int at = from;
      for (const int edge : paths.between(from, to).edges) {
        require(paths.edges()[static_cast<std::size_t>(edge)].from == at, "a path with a gap");
        at = paths.edges()[static_cast<std::size_t>(edge)].to;
      }
      require(at == to || paths.between(from, to).path_class == PathClass::dis, "a path that ends elsewhere");
    }
  }
}

void checkHosts(const std::vector<Topology>& hosts) {
  require(!hosts.empty(), "a file without a host");
  for (const Topology& host : hosts) {
    validate(host);  // std::invalid_argument is a logic_error
    checkPaths(host);
  }
  require(readNcclXml(writeNcclXml(hosts), "written").hosts == hosts, "written and read again, it differs");
}

}  // namespace

void checkNcclXml(std::string_view text) {
  TopologyFile file;
  try {
    file = readNcclXml(text, kName);
  } catch (const FileError& error) {
    return checkMessage(error);
  }
  checkHosts(file.hosts);
}

void checkHwlocXml(std::string_view text) {
  TopologyFile file;
  try {
    file = readHwlocXml(text, kName);
  } catch (const FileError& error) {
    return checkMessage(error);
  }
  checkHosts(file.hosts);
}

void checkGraphXml(std::string_view text) {
  static const Topology host = [] {
    HostBuilder builder;
    const int numa = builder.numaNode("AuthenticAMD", 25, 1);
    for (int i = 0; i < 4; ++i) builder.gpu(numa, kGen4x16, 80);
    for (int i = 0; i < 2; ++i) builder.nic(numa, kGen4x16, 200000);
    return std::move(builder.topology);
  }();
  const std::vector<int> seats = host.all(TopologyKind::gpu);
  std::vector<ChannelGraph> graphs;
  try {
    graphs = readGraphXml(text, kName, host, seats);
  } catch (const FileError& error) {
    return checkMessage(error);
  }
  require(readGraphXml(writeGraphXml(graphs, host, seats), "written", host, seats) == graphs,
          "written and read again, it differs");
  // What is read can be used.
  Cluster cluster;
  cluster.shapes.push_back(
      {.topology = std::make_shared<const Topology>(host), .seats = seats, .caches = {}});
  cluster.hosts.push_back({.name = "host", .shape = 0, .ranks = {0, 1, 2, 3}});
  std::vector<ChannelGraph> rings;
  std::vector<ChannelGraph> trees;
  for (const ChannelGraph& graph : graphs) {
    (graph.pattern == ChannelPattern::ring ? rings : trees).push_back(graph);
  }
  if (rings.empty()) return;
  if (trees.empty()) trees.push_back(rings.front());
  const SearchResult joined = joinHosts(cluster, {}, rings, trees);
  require(!joined.channels.empty(), "rings that make no channel");
  predictBandwidths(cluster, joined, {});
}

}  // namespace tutti::test
