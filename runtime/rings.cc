#include "runtime/rings.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/topology/bandwidths.h"
#include "runtime/topology/file_error.h"
#include "runtime/topology/graph_xml.h"
#include "runtime/topology/xml_file.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// More blocks of a kernel than that gain nothing; TUTTI_LANES ends there, too.
constexpr std::uint32_t kMostLanes = 16;

SearchRules searchRules(const TopologyRules& rules) {
  SearchRules result;
  if (rules.p2p_level) result.p2p_level = *rules.p2p_level;
  if (rules.rdma_level) result.rdma_level = *rules.rdma_level;
  result.cross_nic = rules.cross_nic;
  if (rules.most_channels != 0) {
    result.most_channels = std::min(result.most_channels, static_cast<int>(rules.most_channels));
  }
  // Not the least: more lanes than twice the rings take them in turn.
  return result;
}

[[noreturn]] void refuseFile(const std::string& why) {
  throw Error(ncclInvalidUsage, fmt::format("NCCL_GRAPH_FILE: {}. Correct it, or unset NCCL_GRAPH_FILE, and "
                                            "rings are searched for",
                                            why));
}

bool isRing(const ChannelGraph& graph) { return graph.pattern == ChannelPattern::ring; }

/// What the file says of one shape.
std::vector<ChannelGraph> graphsOf(const GraphFile& file, const Cluster::HostShape& shape,
                                   bool has_other_hosts) {
  try {
    return readGraphXml(file.text, file.name, *shape.topology, shape.seats, has_other_hosts);
  } catch (const FileError& error) {
    refuseFile(error.what());
  }
}

/// Rings have to be in the file.
ChannelGraph ringsIn(const std::vector<ChannelGraph>& graphs, const GraphFile& file) {
  const auto rings = std::ranges::find_if(graphs, isRing);
  if (rings == graphs.end()) refuseFile(file.name + " has no rings (pattern 4)");
  return *rings;
}

/// Trees that the file leaves out are searched for.
ChannelGraph treesIn(const std::vector<ChannelGraph>& graphs, const Cluster::HostShape& shape,
                     const SearchRules& rules, int hosts) {
  const auto trees = std::ranges::find_if_not(graphs, isRing);
  if (trees != graphs.end()) return *trees;
  const TopologyPaths paths(*shape.topology);
  return searchHost(paths, shape.seats, ChannelPattern::tree, rules, hosts);
}

}  // namespace

std::uint64_t GraphFile::hash() const { return name.empty() ? 0 : XXH3_64bits(text.data(), text.size()) | 1; }

GraphFile readGraphFile(const std::string& path) {
  if (path.empty()) return {};
  try {
    return {path, textOfFile(path)};
  } catch (const FileError& error) {
    refuseFile(error.what());
  }
}

SearchResult findRings(const Cluster& cluster, const TopologyRules& rules, const GraphFile& file,
                       TreeUse use) {
  SearchRules search_rules = searchRules(rules);
  search_rules.with_trees = use != TreeUse::none;
  if (file.name.empty()) return searchCluster(cluster, search_rules);
  std::vector<ChannelGraph> rings;
  std::vector<ChannelGraph> trees;
  const int hosts = static_cast<int>(cluster.hosts.size());
  for (const Cluster::HostShape& shape : cluster.shapes) {
    const std::vector<ChannelGraph> graphs = graphsOf(file, shape, hosts > 1);
    rings.push_back(ringsIn(graphs, file));
    if (search_rules.with_trees) trees.push_back(treesIn(graphs, shape, search_rules, hosts));
  }
  return joinHosts(cluster, search_rules, std::move(rings), std::move(trees));
}

Seat seatOf(const Cluster& cluster, int rank) {
  const Cluster::Host& host = cluster.hostOf(rank);
  const Cluster::HostShape& shape = cluster.shapes[host.shape];
  const auto place = std::ranges::find(host.ranks, rank) - host.ranks.begin();
  return {&shape, shape.seats[static_cast<std::size_t>(place)]};
}

ChannelBandwidths bandwidthsOf(const SearchResult& found) {
  // What the search falls back to where it has found nothing says nothing.
  constexpr double kFallback = 0.1;
  const auto total = [&found](double each) {
    return each > kFallback ? each * static_cast<double>(found.channels.size()) : 0;
  };
  // Between hosts whose cards were not seen the search guesses.
  const bool has_cards = std::ranges::all_of(found.rings, [](const ChannelGraph& graph) {
    return !graph.channels.empty() && graph.channels.front().net_out != kNoNode;
  });
  return {total(found.intra_gbytes_per_s), has_cards ? total(found.inter_gbytes_per_s) : 0};
}

std::uint64_t digestOf(const SearchResult& found) {
  std::uint64_t digest = found.channels.size();
  for (const ClusterChannel& channel : found.channels) {
    digest = XXH3_64bits_withSeed(channel.ring.data(), channel.ring.size() * sizeof(int), digest);
  }
  return digest;
}

std::uint32_t lanesFor(const SearchResult& found, const TopologyRules& rules) {
  const auto channels = static_cast<std::uint32_t>(found.channels.size());
  const std::uint32_t least = std::max(1U, std::min(rules.least_channels, kMostLanes));
  const std::uint32_t most =
      rules.most_channels == 0 ? kMostLanes : std::min(rules.most_channels, kMostLanes);
  return std::clamp(2 * channels, std::min(least, most), most);
}

RingTables ringTables(const SearchResult& found) {
  std::vector<std::vector<int>> orders;
  for (const ClusterChannel& channel : found.channels) orders.push_back(channel.ring);
  return RingTables(std::move(orders));
}

std::vector<std::string> describeRings(const Cluster& cluster, const SearchResult& found) {
  std::vector<std::string> lines;
  const std::size_t channels = found.channels.size();
  for (std::size_t c = 0; c < channels; ++c) {
    lines.push_back(
        fmt::format("Channel {:02}/{:02} : {}", c, channels, fmt::join(found.channels[c].ring, " ")));
  }
  for (const ChannelGraph& ring : found.rings) {  // of each shape of host, as NCCL tells of its searches
    lines.push_back(
        fmt::format("Pattern {}, crossNic {}, nChannels {}, bw {:.6f}/{:.6f}, type {}/{}, sameChannels {}",
                    static_cast<int>(ring.pattern), ring.crosses_nics ? 1 : 0, ring.channels.size(),
                    ring.intra_gbytes_per_s, ring.inter_gbytes_per_s, name(ring.intra_class),
                    name(ring.inter_class), ring.same_channels ? 1 : 0));
  }
  std::string text = fmt::format("{} channel(s), ", channels);
  const bool is_limited = found.intra_gbytes_per_s < kLocalGBytes;  // what stays in one place passes no link
  text += is_limited ? fmt::format("{:.4g} GB/s each inside hosts", found.intra_gbytes_per_s)
                     : "no link inside hosts limits them";
  if (cluster.hosts.size() > 1) text += fmt::format(", {:.4g} GB/s between them", found.inter_gbytes_per_s);
  for (const std::string& reason : found.reasons) text += "; " + reason;
  lines.push_back(std::move(text));
  return lines;
}

std::string dumpRings(const Cluster& cluster, const SearchResult& found, int rank, const std::string& path) {
  const std::size_t s = cluster.hostOf(rank).shape;
  const Cluster::HostShape& shape = cluster.shapes[s];
  std::ofstream stream(path, std::ios::binary);
  stream << writeGraphXml({found.rings[s], found.trees[s]}, *shape.topology, shape.seats);
  stream.close();
  return stream ? "" : fmt::format("{}: {}", path, std::strerror(errno));
}

}  // namespace tutti
