#include "runtime/seats.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/peers.h"
#include "tutti/error.h"

namespace tutti {
namespace {

bool mayRunOn(const PeerInfo& peer, int cpu) {
  const auto word = static_cast<std::size_t>(cpu) / 64;
  return word < peer.cores.size() && (peer.cores[word] >> (static_cast<std::size_t>(cpu) % 64) & 1) != 0;
}

bool mayRunOnAnyOf(const PeerInfo& peer, const std::vector<int>& cpus) {
  return std::ranges::any_of(cpus, [&peer](int cpu) { return mayRunOn(peer, cpu); });
}

/// `place`: of the rank among the `count` of its host.
int numaNodeOf(const Topology& topology, const PeerInfo& peer, std::size_t place, std::size_t count) {
  std::vector<int> nodes = topology.all(TopologyKind::numa_node);
  std::vector<int> own = nodes;
  std::erase_if(own, [&](int node) {
    return !mayRunOnAnyOf(peer, topology.nodes[static_cast<std::size_t>(node)].cpu.cpus);
  });
  // More CPUs than PeerInfo holds, or another machine's file.
  if (own.empty()) own = std::move(nodes);
  return own[place * own.size() / count];
}

/// A number of the last-level cache, among all of the host, that all the CPUs share which the rank may run
/// on; -1: there is none, or it is not known.
int cacheOf(const Topology& topology, const PeerInfo& peer) {
  int number = 0;
  int found = -1;
  for (const TopologyNode& node : topology.nodes) {
    for (const std::vector<int>& cache : node.cpu.caches) {
      if (mayRunOnAnyOf(peer, cache)) {
        if (found >= 0) return -1;
        found = number;
      }
      ++number;
    }
  }
  return found;
}

int gpuOf(const Topology& topology, const PeerInfo& peer) {
  const int node = topology.find(peer.gpu_bus_id.data());
  if (node != kNoNode && topology.nodes[static_cast<std::size_t>(node)].kind == TopologyKind::gpu)
    return node;
  throw Error(
      ncclInternalError,
      fmt::format("{} works on GPU {}, which the description of its host lacks. Is NCCL_TOPO_FILE that "
                  "of another machine?",
                  describe(peer), peer.gpu_bus_id.data()));
}

}  // namespace

Cluster::HostShape seatsOf(std::shared_ptr<const Topology> topology, const std::vector<int>& ranks,
                           const std::vector<PeerInfo>& peers) {
  Cluster::HostShape shape{.topology = std::move(topology), .seats = {}, .caches = {}};
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const PeerInfo& peer = peers[static_cast<std::size_t>(ranks[place])];
    const bool is_on_gpu = peer.gpu_bus_id[0] != 0;
    shape.seats.push_back(is_on_gpu ? gpuOf(*shape.topology, peer)
                                    : numaNodeOf(*shape.topology, peer, place, ranks.size()));
    shape.caches.push_back(is_on_gpu ? -1 : cacheOf(*shape.topology, peer));
  }
  if (std::ranges::find(shape.caches, -1) != shape.caches.end()) shape.caches.clear();
  return shape;
}

}  // namespace tutti
