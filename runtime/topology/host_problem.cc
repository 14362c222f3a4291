#include "runtime/topology/host_problem.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "runtime/topology/legs.h"

namespace tutti {
namespace {

class LegBuilder {
 public:
  LegBuilder(HostProblem& host, const TopologyPaths& paths, const SearchRules& rules)
      : problem_(host.problem), paths_(paths), rules_(rules) {}

  void build() {
    const double share = isBothWays(problem_.form) ? kChainShare : 1;
    for (const int from : problem_.places) {
      for (const int to : problem_.places) problem_.between.push_back(leg(from, to, share));
    }
    for (const int port : problem_.ports) {
      for (const int place : problem_.places) {
        problem_.in.push_back(leg(port, place, 1));
        problem_.out.push_back(leg(place, port, 1));
      }
    }
  }

 private:
  Leg leg(int from, int to, double share) {
    Leg leg = legBetween(paths_, rules_, from, to);
    for (LinkUse& use : leg.links) {
      use = {linkOf(use.link), static_cast<int>(std::lround(use.tenths * share))};
    }
    return leg;
  }

  int linkOf(int edge) {
    std::vector<ChannelProblem::Link>& links = problem_.links;
    const auto [it, is_new] = links_.try_emplace(edge, static_cast<int>(links.size()));
    if (is_new) {
      const Edge& e = paths_.edges()[static_cast<std::size_t>(edge)];
      links.push_back({e.from, e.to, e.gbytes_per_s});
    }
    return it->second;
  }

  ChannelProblem& problem_;
  const TopologyPaths& paths_;
  const SearchRules& rules_;
  std::unordered_map<int, int> links_;  ///< edge -> link
};

}  // namespace

HostProblem placesOf(const TopologyPaths& paths, const std::vector<int>& seats, RouteForm form) {
  HostProblem host;
  host.problem.form = form;
  if (hasPorts(form)) host.problem.ports = portsOf(paths.topology());
  std::unordered_map<int, std::size_t> known;  // node -> place
  for (std::size_t seat = 0; seat < seats.size(); ++seat) {
    const auto [it, is_new] = known.try_emplace(seats[seat], host.seats.size());
    if (is_new) {
      host.problem.places.push_back(seats[seat]);
      host.seats.emplace_back();
    }
    host.seats[it->second].push_back(static_cast<int>(seat));
  }
  return host;
}

void sortPlaces(HostProblem& host, const Topology& topology) {
  const std::vector<int> order = topology.orderByName();
  const auto byName = [&order](int node) { return order[static_cast<std::size_t>(node)]; };
  std::ranges::sort(host.problem.ports, {}, byName);
  std::vector<std::pair<int, std::vector<int>>> places;
  places.reserve(host.seats.size());
  for (std::size_t i = 0; i < host.seats.size(); ++i)
    places.emplace_back(host.problem.places[i], std::move(host.seats[i]));
  std::ranges::sort(places, {}, [&](const auto& place) { return byName(place.first); });
  for (std::size_t i = 0; i < places.size(); ++i) {
    host.problem.places[i] = places[i].first;
    host.seats[i] = std::move(places[i].second);
  }
}

void addLegs(HostProblem& host, const TopologyPaths& paths, const SearchRules& rules) {
  LegBuilder(host, paths, rules).build();
}

}  // namespace tutti
