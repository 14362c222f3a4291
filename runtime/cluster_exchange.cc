#include "runtime/cluster_exchange.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "runtime/peers.h"
#include "runtime/seats.h"
#include "runtime/topology/discovery.h"
#include "runtime/topology/nccl_xml.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Digest = std::array<std::uint8_t, 16>;

/// In one message of the bootstrap, of 1 MiB at most.
constexpr std::size_t kBytesPerRound = 512U << 10;
/// Of one description: 8 GPUs and 8 NICs are 10 KB.
constexpr std::size_t kMostBytes = 4U << 20;

Digest digestOf(std::string_view text) {
  Digest digest;
  crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), nullptr, 0);
  return digest;
}

/// The descriptions that are sent, each by the first rank that has it, in the order of those ranks.
std::vector<int> senders(const std::vector<TopologyNotice>& notices, const RanksByHost& hosts) {
  std::vector<int> found;
  for (const std::vector<int>& ranks : hosts) {
    const TopologyNotice& notice = notices[static_cast<std::size_t>(ranks[0])];
    const bool is_known = std::ranges::any_of(
        found, [&](int rank) { return notices[static_cast<std::size_t>(rank)].digest == notice.digest; });
    if (!is_known) found.push_back(ranks[0]);
  }
  return found;
}

struct Part {
  int sender;
  std::size_t begin;
  std::size_t bytes;
};

/// What is sent in each round: texts one after the other, the last of a round perhaps going on in the next.
std::vector<std::vector<Part>> roundsOf(const std::vector<int>& from,
                                        const std::vector<TopologyNotice>& notices) {
  std::vector<std::vector<Part>> rounds;
  std::size_t room = 0;
  for (const int sender : from) {
    const std::size_t size = notices[static_cast<std::size_t>(sender)].bytes;
    for (std::size_t begin = 0; begin < size; begin += rounds.back().back().bytes) {
      if (room == 0) {
        rounds.emplace_back();
        room = kBytesPerRound;
      }
      rounds.back().push_back({sender, begin, std::min(room, size - begin)});
      room -= rounds.back().back().bytes;
    }
  }
  return rounds;
}

std::map<int, std::string> gatherTexts(Bootstrap& bootstrap, int rank, const std::string& own,
                                       const std::vector<std::vector<Part>>& rounds) {
  std::map<int, std::string> texts;
  for (const std::vector<Part>& round : rounds) {
    std::string_view mine;
    for (const Part& part : round) {
      if (part.sender == rank && part.begin < own.size())
        mine = std::string_view(own).substr(part.begin, part.bytes);
    }
    const std::vector<Bytes> parts =
        bootstrap.allGatherBytes({reinterpret_cast<const std::uint8_t*>(mine.data()), mine.size()});
    for (const Part& part : round) {
      const Bytes& bytes = parts[static_cast<std::size_t>(part.sender)];
      texts[part.sender].append(bytes.begin(), bytes.end());
    }
  }
  return texts;
}

std::shared_ptr<const Topology> read(const std::string& text, const TopologyNotice& notice,
                                     const PeerInfo& from) {
  if (text.size() != notice.bytes || digestOf(text) != notice.digest) {
    throw Error(ncclInternalError,
                fmt::format("the description of its host that {} sent is damaged: {} bytes of {}",
                            describe(from), text.size(), notice.bytes));
  }
  try {
    TopologyFile file = readNcclXml(text, fmt::format("the host of {}", describe(from)));
    return std::make_shared<const Topology>(std::move(file.hosts.front()));
  } catch (const std::exception& error) {
    throw Error(ncclInternalError, error.what());
  }
}

}  // namespace

TopologyDescription describeTopology(Topology topology, const std::vector<int>& ranks,
                                     const std::vector<PeerInfo>& peers) {
  std::vector<std::string> added;
  for (const int rank : ranks) {
    const std::string bus_id = peers[static_cast<std::size_t>(rank)].gpu_bus_id.data();
    if (bus_id.empty() || topology.find(bus_id) != kNoNode) continue;
    addGpu(topology, bus_id);
    const int numa = topology.numaOf(topology.find(bus_id));
    added.push_back(fmt::format("{}; it is added at {}", bus_id,
                                numa == kNoNode ? "no NUMA node" : topology.label(numa)));
  }
  topology.unseen.clear();
  TopologyDescription description{
      .text = writeNcclXml({withoutIdentity(std::move(topology))}), .notice = {}, .added = std::move(added)};
  if (description.text.size() > kMostBytes) {
    throw Error(
        ncclInvalidUsage,
        fmt::format("{} bytes describe the host of {}, and {} are the most. Is NCCL_TOPO_FILE that of "
                    "one host?",
                    description.text.size(), describe(peers[static_cast<std::size_t>(ranks[0])]),
                    kMostBytes));
  }
  description.notice = {.digest = digestOf(description.text),
                        .bytes = static_cast<std::uint32_t>(description.text.size())};
  return description;
}

std::shared_ptr<const Cluster> exchangeTopologies(Bootstrap& bootstrap, int rank, const std::string& own,
                                                  const std::vector<TopologyNotice>& notices,
                                                  const RanksByHost& hosts,
                                                  const std::vector<PeerInfo>& peers) {
  const std::vector<int> from = senders(notices, hosts);
  for (const int sender : from) {
    const auto at = static_cast<std::size_t>(sender);
    if (notices[at].bytes == 0 || notices[at].bytes > kMostBytes) {
      throw Error(ncclInternalError,
                  fmt::format("{} announces {} bytes that describe its host, and {} are the most",
                              describe(peers[at]), notices[at].bytes, kMostBytes));
    }
  }
  const auto texts = gatherTexts(bootstrap, rank, own, roundsOf(from, notices));
  std::map<Digest, std::shared_ptr<const Topology>> topologies;
  for (const int sender : from) {
    const auto at = static_cast<std::size_t>(sender);
    topologies[notices[at].digest] = read(texts.at(sender), notices[at], peers[at]);
  }
  auto cluster = std::make_shared<Cluster>();
  for (const std::vector<int>& ranks : hosts) {
    const auto leader = static_cast<std::size_t>(ranks[0]);
    const Cluster::HostShape shape = seatsOf(topologies[notices[leader].digest], ranks, peers);
    const auto same = std::ranges::find_if(cluster->shapes, [&shape](const Cluster::HostShape& other) {
      return other.topology == shape.topology && other.seats == shape.seats && other.caches == shape.caches;
    });
    const auto index = static_cast<std::size_t>(same - cluster->shapes.begin());
    if (same == cluster->shapes.end()) cluster->shapes.push_back(shape);
    cluster->hosts.push_back({.name = peers[leader].host.data(), .shape = index, .ranks = ranks});
  }
  return cluster;
}

std::string dumpTopology(const Cluster& cluster, int rank, const std::string& path) {
  const Cluster::Host& host = cluster.hostOf(rank);
  const Cluster::HostShape& shape = cluster.shapes[host.shape];
  Topology topology = *shape.topology;
  for (std::size_t i = 0; i < shape.seats.size(); ++i)
    topology.nodes[static_cast<std::size_t>(shape.seats[i])].gpu.rank = host.ranks[i];
  std::ofstream file(path);
  file << writeNcclXml({topology});
  file.close();
  return file ? "" : fmt::format("{}: {}", path, std::strerror(errno));
}

}  // namespace tutti
