#include "runtime/topology/legs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool is(const Topology& topology, int node, TopologyKind kind) {
  return topology.nodes[at(node)].kind == kind;
}

Leg direct(const TopologyPaths& paths, int from, int to) {
  const Path& path = paths.between(from, to);
  Leg leg{path.path_class, {}};
  const int pci_tenths = static_cast<int>(std::lround(path.pci_load * 10));
  for (const int edge : path.edges) {
    leg.links.push_back({edge, paths.edges()[at(edge)].kind == Edge::Kind::pci ? pci_tenths : 10});
  }
  return leg;
}

Leg through(const TopologyPaths& paths, int from, int middle, int to) {
  Leg leg = direct(paths, from, middle);
  const Leg rest = direct(paths, middle, to);
  leg.links.insert(leg.links.end(), rest.links.begin(), rest.links.end());
  leg.path_class = std::max({PathClass::phb, leg.path_class, rest.path_class});
  return leg;
}

}  // namespace

Leg legBetween(const TopologyPaths& paths, const SearchRules& rules, int from, int to) {
  if (from == to) return {PathClass::loc, {}};
  const Topology& topology = paths.topology();
  const bool is_from_gpu = is(topology, from, TopologyKind::gpu);
  const bool is_to_gpu = is(topology, to, TopologyKind::gpu);
  const bool has_port = is(topology, from, TopologyKind::net) || is(topology, to, TopologyKind::net);
  Leg leg = direct(paths, from, to);
  const bool reaches_gpu = has_port ? is_from_gpu || is_to_gpu : is_from_gpu && is_to_gpu;
  if (!reaches_gpu || leg.path_class <= (has_port ? rules.rdma_level : rules.p2p_level)) return leg;
  const int memory = topology.numaOf(is_from_gpu ? from : to);
  if (memory == kNoNode) return leg;
  Leg staged = through(paths, from, memory, to);
  return staged.path_class < PathClass::net ? staged : leg;
}

std::vector<int> portsOf(const Topology& topology) {
  std::vector<int> ports = topology.all(TopologyKind::net);
  const auto is_rdma = [&topology](int node) { return topology.nodes[at(node)].net.port > 0; };
  if (std::ranges::any_of(ports, is_rdma)) std::erase_if(ports, std::not_fn(is_rdma));
  return ports;
}

RouteForm formOf(ChannelPattern pattern, bool with_ports) {
  if (pattern == ChannelPattern::ring) return with_ports ? RouteForm::ported_ring : RouteForm::ring;
  return with_ports ? RouteForm::ported_chain : RouteForm::chain;
}

ChannelUses usesOf(const TopologyPaths& paths, const SearchRules& rules, const std::vector<int>& seats,
                   RouteForm form, const std::vector<HostChannel>& channels) {
  ChannelUses uses{std::vector<double>(paths.edges().size()), std::vector<double>(paths.edges().size())};
  const double inside = isBothWays(form) ? kChainShare : 1;
  const auto take = [&](std::vector<double>& by_edge, int from, int to, double share) {
    if (from == kNoNode || to == kNoNode) return;
    for (const LinkUse& use : legBetween(paths, rules, from, to).links) {
      by_edge[at(use.link)] += share * use.tenths / 10;
    }
  };
  for (const HostChannel& channel : channels) {
    const auto node = [&](std::size_t position) { return seats[at(channel.order[position])]; };
    const std::size_t count = channel.order.size();
    for (std::size_t i = 0; i + 1 < count; ++i) {
      take(uses.inside, node(i), node(i + 1), inside);
      if (isBothWays(form)) take(uses.inside, node(i + 1), node(i), inside);
    }
    if (form == RouteForm::ring) take(uses.inside, node(count - 1), node(0), inside);
    if (!hasPorts(form)) continue;
    take(uses.to_ports, channel.net_in, node(0), 1);
    take(uses.to_ports, node(isBothWays(form) ? 0 : count - 1), channel.net_out, 1);
  }
  return uses;
}

std::string describe(const Topology& topology, const Edge& edge) {
  const auto label = [&topology](int node) { return topology.label(node); };
  const bool is_up = topology.nodes[at(edge.from)].parent == edge.to;
  switch (edge.kind) {
    case Edge::Kind::pci:
      if (!is_up && topology.nodes[at(edge.to)].parent != edge.from) {
        return fmt::format("PCI link from {} to {}", label(edge.from), label(edge.to));
      }
      return fmt::format("PCI link {} {}", is_up ? "from" : "to", label(is_up ? edge.from : edge.to));
    case Edge::Kind::nvlink:
      return fmt::format("NVLinks from {} to {}", label(edge.from), label(edge.to));
    case Edge::Kind::c2c:
      return fmt::format("C2C link from {} to {}", label(edge.from), label(edge.to));
    case Edge::Kind::socket:
      return fmt::format("way from {} to {}", label(edge.from), label(edge.to));
    case Edge::Kind::net: {
      const int port = is_up ? edge.from : edge.to;
      const bool has_name = !topology.nodes[at(port)].net.name.empty();  // else its label begins so
      return fmt::format("{}{} {}", has_name ? "port " : "", label(port), is_up ? "inwards" : "outwards");
    }
  }
  return {};
}

}  // namespace tutti
