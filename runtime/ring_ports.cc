#include "runtime/ring_ports.h"

#include <algorithm>

#include "runtime/rings.h"
#include "runtime/topology/paths.h"

namespace tutti {
namespace {

RdmaPlace placeOf(const Topology& topology, int port) {
  const TopologyNode& node = topology.nodes[static_cast<std::size_t>(port)];
  const std::string& bus_id = topology.nodes[static_cast<std::size_t>(node.parent)].bus_id;
  return {.device = node.net.name, .port = node.net.port, .bus_id = bus_id};
}

}  // namespace

std::vector<RingPort> ringPortsOf(const Cluster& cluster, const SearchResult& found, int rank) {
  const Cluster::Host& host = cluster.hostOf(rank);
  const Topology& topology = *cluster.shapes[host.shape].topology;
  const auto isHere = [&host](int other) { return std::ranges::find(host.ranks, other) != host.ranks.end(); };
  const int seat = static_cast<int>(std::ranges::find(host.ranks, rank) - host.ranks.begin());
  std::vector<RingPort> ports;
  for (std::size_t c = 0; c < found.channels.size(); ++c) {
    const std::vector<int>& ring = found.channels[c].ring;
    const auto place = static_cast<std::size_t>(std::ranges::find(ring, rank) - ring.begin());
    const HostChannel& channel = found.rings[host.shape].channels[c];
    const auto add = [&](int peer, bool sends) {
      const int port = portAt(channel, seat, sends);
      if (isHere(peer) || port == kNoNode) return;
      ports.push_back({peer, static_cast<std::uint32_t>(c), sends, placeOf(topology, port)});
    };
    add(ring[(place + 1) % ring.size()], true);
    add(ring[(place + ring.size() - 1) % ring.size()], false);
  }
  return ports;
}

std::vector<RdmaPlace> rdmaPlacesOf(const Cluster& cluster, int rank) {
  const auto [shape, seat] = seatOf(cluster, rank);
  const TopologyPaths paths(*shape->topology);
  std::vector<RdmaPlace> places;
  for (const int port : shape->topology->all(TopologyKind::net)) {
    RdmaPlace place = placeOf(*shape->topology, port);
    if (place.port == 0) continue;  // a network interface
    if (seat != kNoNode) place.path_class = paths.between(seat, port).path_class;
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace tutti
