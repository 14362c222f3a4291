// The search inside one host: classes are allowed one by one, for each the channels that carry most are
// packed, and the first that a worse class does not clearly beat are taken.
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/topology/bandwidths.h"
#include "runtime/topology/cuts.h"
#include "runtime/topology/host_problem.h"
#include "runtime/topology/legs.h"
#include "runtime/topology/packing.h"
#include "runtime/topology/search.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// A worse class, or crossing NICs, must carry so many times as much: what is farther has its price in
/// latency and in who else uses it, which links alone do not show.
constexpr double kWorthRelaxing = 1.25;
/// As NCCL: where nothing is found.
constexpr double kLastResortGBytes = 0.1;
constexpr double kSame = 1e-9;

struct Found {
  Routes routes;
  Packing packing;
  bool crosses_ports = false;
};

std::vector<PathClass> classesOf(const std::vector<Leg>& legs) {
  std::vector<PathClass> classes;
  for (const Leg& leg : legs) {
    if (leg.path_class < PathClass::net) classes.push_back(leg.path_class);
  }
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

/// From the strictest on: a channel crosses NICs before it takes a worse way to one.
std::vector<RouteRules> relaxations(const ChannelProblem& problem, const SearchRules& rules) {
  std::vector<RouteRules> all;
  std::vector<PathClass> to_ports{PathClass::loc};
  if (hasPorts(problem.form)) to_ports = classesOf(problem.in);
  const bool may_cross =
      problem.form == RouteForm::ported_ring && rules.cross_nic != SearchRules::CrossNic::no;
  for (const PathClass inside : classesOf(problem.between)) {
    for (const PathClass port : to_ports) {
      all.push_back({inside, port, false});
      if (may_cross) all.push_back({inside, port, true});
    }
  }
  return all;
}

std::optional<Found> findBest(const ChannelProblem& problem, const SearchRules& rules, int most_channels) {
  std::optional<Found> best;
  PackingRules packing{.most_channels = most_channels};
  for (const RouteRules& rule : relaxations(problem, rules)) {
    const bool is_welcome = rule.crosses_ports && rules.cross_nic == SearchRules::CrossNic::yes;
    const double needed = best ? best->packing.total() * (is_welcome ? 1 + kSame : kWorthRelaxing) : 0;
    const std::vector<Cut> cuts = findCuts(problem, rule);
    if (boundOf(problem, cuts) <= needed) continue;
    Found found{findRoutes(problem, rule), {}, rule.crosses_ports};
    found.packing = pack(problem, found.routes, cuts, packing);
    packing.most_steps -= found.packing.steps;
    if (found.packing.total() > needed) best = std::move(found);
  }
  return best;
}

std::vector<int> seatsInOrder(const HostProblem& host, const std::vector<int>& places) {
  std::vector<int> seats;
  for (const int place : places) {
    seats.insert(seats.end(), host.seats[at(place)].begin(), host.seats[at(place)].end());
  }
  return seats;
}

/// What one block of threads is there for: one NVLink, where there are such. 0: no bound.
double mostPerChannel(const Topology& topology, const std::vector<int>& seats) {
  double least = 0;
  for (const NvLinks& links : topology.nvlinks) {
    if (links.is_c2c || std::ranges::find(seats, links.from) == seats.end()) continue;
    const double rate = links.gbytes_per_s > 0
                            ? links.gbytes_per_s
                            : nvlinkGBytes(topology.nodes[at(links.from)].gpu.compute_capability);
    least = least == 0 ? rate : std::min(least, rate);
  }
  return least;
}

/// Speeds as far as the edges go: with the channels at `speed` for both, what is left goes to the way inside,
/// else to the way to the ports.
void setSpeeds(ChannelGraph& graph, const TopologyPaths& paths, const ChannelUses& uses, double speed,
               bool has_ports) {
  const auto raised = [&](const std::vector<double>& these, const std::vector<double>& others) {
    double most = kLocalGBytes;
    for (std::size_t e = 0; e < these.size(); ++e) {
      if (these[e] > 0) most = std::min(most, (paths.edges()[e].gbytes_per_s - speed * others[e]) / these[e]);
    }
    return std::max(most, speed);
  };
  graph.intra_gbytes_per_s = raised(uses.inside, uses.to_ports);
  graph.inter_gbytes_per_s = graph.intra_gbytes_per_s;
  if (!has_ports) return;
  graph.inter_gbytes_per_s =
      graph.intra_gbytes_per_s > speed * (1 + kSame) ? speed : raised(uses.to_ports, uses.inside);
}

/// Several channels in the place of each, where one would be too fast for a block of threads.
void divide(ChannelGraph& graph, double most_per_channel, const SearchRules& rules) {
  const int count = static_cast<int>(graph.channels.size());
  int parts = 1;
  if (most_per_channel > 0) {
    const double speed = std::min(graph.intra_gbytes_per_s, graph.inter_gbytes_per_s);
    parts = static_cast<int>(std::ceil(speed / most_per_channel * (1 - kSame)));
  }
  parts = std::clamp(parts, 1, std::max(1, rules.most_channels / count));
  const std::vector<HostChannel> once = graph.channels;
  for (int part = 1; part < parts; ++part) {
    graph.channels.insert(graph.channels.end(), once.begin(), once.end());
  }
  graph.intra_gbytes_per_s /= parts;
  graph.inter_gbytes_per_s /= parts;
}

/// What the worst leg of a channel is, inside and to its ports.
void setClasses(ChannelGraph& graph, const TopologyPaths& paths, const std::vector<int>& seats,
                const SearchRules& rules) {
  const HostChannel& channel = graph.channels.front();
  const auto node = [&](std::size_t position) { return seats[at(channel.order[position])]; };
  const auto legClass = [&](int from, int to) { return legBetween(paths, rules, from, to).path_class; };
  const std::size_t count = channel.order.size();
  graph.intra_class = graph.inter_class = PathClass::loc;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    graph.intra_class = std::max(graph.intra_class, legClass(node(i), node(i + 1)));
  }
  if (channel.net_in == kNoNode) {
    if (graph.pattern == ChannelPattern::ring) {
      graph.intra_class = std::max(graph.intra_class, legClass(node(count - 1), node(0)));
    }
    return;
  }
  const std::size_t last = graph.pattern == ChannelPattern::ring ? count - 1 : 0;
  graph.inter_class = std::max(legClass(channel.net_in, node(0)), legClass(node(last), channel.net_out));
}

/// The order of the seats: where there are too many places or ports to search, at what its links carry; where
/// there is no way, at a speed that says nothing.
ChannelGraph lastResort(const HostProblem& host, const TopologyPaths& paths, const std::vector<int>& seats,
                        ChannelPattern pattern, const SearchRules& rules) {
  ChannelGraph graph{.pattern = pattern,
                     .intra_gbytes_per_s = kLastResortGBytes,
                     .inter_gbytes_per_s = kLastResortGBytes,
                     .intra_class = PathClass::sys,
                     .inter_class = PathClass::sys};
  HostChannel channel;
  for (const std::vector<int>& place : host.seats) {
    channel.order.insert(channel.order.end(), place.begin(), place.end());
  }
  const bool has_ports = !host.problem.ports.empty();
  if (has_ports) channel.net_in = channel.net_out = host.problem.ports.front();
  graph.channels.assign(1, channel);
  if (seats.empty()) return graph;
  setClasses(graph, paths, seats, rules);
  if (std::max(graph.intra_class, graph.inter_class) >= PathClass::net) return graph;
  const ChannelUses uses = usesOf(paths, rules, seats, host.problem.form, graph.channels);
  double speed = kLocalGBytes;
  for (std::size_t e = 0; e < uses.inside.size(); ++e) {
    const double both = uses.inside[e] + uses.to_ports[e];
    if (both > 0) speed = std::min(speed, paths.edges()[e].gbytes_per_s / both);
  }
  setSpeeds(graph, paths, uses, speed, has_ports);
  return graph;
}

}  // namespace

ChannelGraph searchHost(const TopologyPaths& paths, const std::vector<int>& seats, ChannelPattern pattern,
                        const SearchRules& rules, int hosts) {
  const bool has_ports = hosts > 1 && !portsOf(paths.topology()).empty();
  const RouteForm form = formOf(pattern, has_ports);
  HostProblem host = placesOf(paths, seats, form);
  const bool is_too_large =
      host.seats.size() > kMostSearchedPlaces || host.problem.ports.size() > kMostSearchedPorts;
  if (is_too_large || seats.empty()) return lastResort(host, paths, seats, pattern, rules);
  sortPlaces(host, paths.topology());
  addLegs(host, paths, rules);
  // Ranks in host memory have one thread: one channel.
  const bool has_gpus = paths.topology().nodes[at(seats.front())].kind == TopologyKind::gpu;
  const std::optional<Found> found = findBest(host.problem, rules, has_gpus ? rules.most_channels : 1);
  if (!found) return lastResort(host, paths, seats, pattern, rules);

  ChannelGraph graph{.pattern = pattern, .intra_class = PathClass::loc, .inter_class = PathClass::loc};
  for (const int index : found->packing.routes) {
    const Route& route = found->routes.routes[at(index)];
    HostChannel channel{.order = seatsInOrder(host, route.order)};
    // A ring that stays inside begins nowhere: people look for the first seat.
    std::vector<int>& order = channel.order;
    if (form == RouteForm::ring) std::rotate(order.begin(), std::ranges::find(order, 0), order.end());
    if (has_ports) {
      channel.net_in = host.problem.ports[at(route.in)];
      channel.net_out = host.problem.ports[at(route.out)];
    }
    graph.crosses_nics = graph.crosses_nics || route.in != route.out;
    graph.intra_class = std::max(graph.intra_class, route.inside);
    graph.inter_class = std::max(graph.inter_class, route.to_ports);
    graph.channels.push_back(std::move(channel));
  }
  if (!has_ports) graph.inter_class = hosts > 1 ? PathClass::sys : PathClass::pix;  // of one host, as NCCL
  graph.same_channels = std::ranges::all_of(graph.channels, [&graph](const HostChannel& channel) {
    return channel.order == graph.channels.front().order;
  });
  graph.was_cut_short = !found->packing.is_proven;
  setSpeeds(graph, paths, usesOf(paths, rules, seats, form, graph.channels), found->packing.gbytes_per_s,
            has_ports);
  if (hosts > 1 && !has_ports) {
    const double guess = netGBytes({}) / static_cast<double>(graph.channels.size());
    graph.inter_gbytes_per_s = std::min(graph.intra_gbytes_per_s, guess);
  }
  const bool is_alone = host.seats.size() == 1 && !has_ports;
  divide(graph, is_alone ? 0 : mostPerChannel(paths.topology(), seats), rules);
  return graph;
}

}  // namespace tutti
