#include "runtime/topology/rails.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "runtime/topology/legs.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

using Slot = std::tuple<std::string, int>;  ///< the card's bus id, the port

Slot slotOf(const Topology& topology, int port) {
  const TopologyNode& node = topology.nodes[at(port)];
  return {node.parent == kNoNode ? "" : topology.nodes[at(node.parent)].bus_id, node.net.port};
}

int railAt(const std::vector<int>& rails, int port) { return port == kNoNode ? kNoNode : rails[at(port)]; }

HostChannel reversed(const HostChannel& channel) {
  return {channel.net_out, channel.net_in, {channel.order.rbegin(), channel.order.rend()}};
}

/// Both directions of a link may differ.
bool fitsBackwards(const TopologyPaths& paths, const Cluster::HostShape& shape, const ChannelGraph& ring,
                   const SearchRules& rules) {
  std::vector<HostChannel> channels;
  std::ranges::transform(ring.channels, std::back_inserter(channels), reversed);
  const ChannelUses uses = usesOf(paths, rules, shape.seats, RouteForm::ported_ring, channels);
  for (std::size_t e = 0; e < paths.edges().size(); ++e) {
    const double load = uses.inside[e] * ring.intra_gbytes_per_s + uses.to_ports[e] * ring.inter_gbytes_per_s;
    if (load > paths.edges()[e].gbytes_per_s * (1 + 1e-9)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::vector<int>> railsOf(const Cluster& cluster) {
  std::set<Slot> slots;
  std::size_t most = 0;
  for (const Cluster::HostShape& shape : cluster.shapes) {
    const std::vector<int> ports = portsOf(*shape.topology);
    most = std::max(most, ports.size());
    for (const int port : ports) slots.insert(slotOf(*shape.topology, port));
  }
  const bool slots_tell = slots.size() == most;
  std::vector<std::vector<int>> rails;
  for (const Cluster::HostShape& shape : cluster.shapes) {
    std::vector<int>& of_shape = rails.emplace_back(shape.topology->nodes.size(), kNoNode);
    const std::vector<int> ports = portsOf(*shape.topology);
    for (std::size_t position = 0; position < ports.size(); ++position) {
      const auto slot = slots.find(slotOf(*shape.topology, ports[position]));
      const auto rail =
          slots_tell ? std::distance(slots.begin(), slot) : static_cast<std::ptrdiff_t>(position);
      of_shape[at(ports[position])] = static_cast<int>(rail);
    }
  }
  return rails;
}

void alignRails(const Cluster& cluster, std::vector<ChannelGraph>& rings) {
  const std::vector<std::vector<int>> rails = railsOf(cluster);
  const auto model =
      std::ranges::min_element(rings, {}, [](const ChannelGraph& g) { return g.channels.size(); });
  const std::vector<HostChannel> models = model->channels;
  const std::vector<int>& model_rails = rails[static_cast<std::size_t>(model - rings.begin())];
  for (std::size_t s = 0; s < rings.size(); ++s) {
    std::vector<HostChannel>& channels = rings[s].channels;
    const auto moveTo = [&](std::size_t c, bool by_both) {
      const auto fits = [&](const HostChannel& channel) {
        return railAt(rails[s], channel.net_in) == railAt(model_rails, models[c].net_in) &&
               (!by_both || railAt(rails[s], channel.net_out) == railAt(model_rails, models[c].net_out));
      };
      const auto place = channels.begin() + static_cast<std::ptrdiff_t>(c);
      const auto it = std::find_if(place, channels.end(), fits);
      if (it == channels.end()) return false;
      std::rotate(place, it, it + 1);
      return true;
    };
    for (std::size_t c = 0; c < models.size(); ++c) {
      if (!moveTo(c, true)) moveTo(c, false);
    }
    channels.resize(models.size());
  }
}

std::vector<bool> hostsWalkedBackwards(const Cluster& cluster, const std::vector<TopologyPaths>& paths,
                                       const std::vector<ChannelGraph>& rings, const SearchRules& rules) {
  const std::vector<std::vector<int>> rails = railsOf(cluster);
  std::vector<bool> may_turn;
  for (std::size_t s = 0; s < rings.size(); ++s) {
    may_turn.push_back(rings[s].crosses_nics && fitsBackwards(paths[s], cluster.shapes[s], rings[s], rules));
  }
  std::vector<bool> backwards(cluster.hosts.size());
  const auto rail = [&](std::size_t host, std::size_t channel, bool is_in) {
    const HostChannel& it = rings[cluster.hosts[host].shape].channels[channel];
    return railAt(rails[cluster.hosts[host].shape], is_in ? it.net_in : it.net_out);
  };
  for (std::size_t h = 1; h < cluster.hosts.size(); ++h) {
    if (!may_turn[cluster.hosts[h].shape]) continue;
    int forwards_matches = 0;
    int backwards_matches = 0;
    for (std::size_t c = 0; c < rings.front().channels.size(); ++c) {
      const int from = rail(h - 1, c, backwards[h - 1]);
      forwards_matches += rail(h, c, true) == from ? 1 : 0;
      backwards_matches += rail(h, c, false) == from ? 1 : 0;
    }
    backwards[h] = backwards_matches > forwards_matches;
  }
  return backwards;
}

}  // namespace tutti
