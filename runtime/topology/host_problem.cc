#include "runtime/topology/host_problem.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "runtime/topology/legs.h"

namespace tutti {
namespace {

class ProblemBuilder {
 public:
  ProblemBuilder(const TopologyPaths& paths, const SearchRules& rules) : paths_(paths), rules_(rules) {}

  HostProblem build(const std::vector<int>& seats, RouteForm form) {
    ChannelProblem& problem = host_.problem;
    problem.form = form;
    for (std::size_t seat = 0; seat < seats.size(); ++seat) addSeat(static_cast<int>(seat), seats[seat]);
    if (hasPorts(form)) problem.ports = portsOf(paths_.topology());
    for (const int from : problem.places) {
      for (const int to : problem.places)
        problem.between.push_back(leg(from, to, isBothWays(form) ? kChainShare : 1));
    }
    for (const int port : problem.ports) {
      for (const int place : problem.places) {
        problem.in.push_back(leg(port, place, 1));
        problem.out.push_back(leg(place, port, 1));
      }
    }
    return std::move(host_);
  }

 private:
  void addSeat(int seat, int node) {
    std::vector<int>& places = host_.problem.places;
    const auto place = std::ranges::find(places, node) - places.begin();
    if (place == std::ssize(places)) {
      places.push_back(node);
      host_.seats.emplace_back();
    }
    host_.seats[static_cast<std::size_t>(place)].push_back(seat);
  }

  Leg leg(int from, int to, double share) {
    Leg leg = legBetween(paths_, rules_, from, to);
    for (LinkUse& use : leg.links) {
      use = {linkOf(use.link), static_cast<int>(std::lround(use.tenths * share))};
    }
    return leg;
  }

  int linkOf(int edge) {
    std::vector<ChannelProblem::Link>& links = host_.problem.links;
    const auto [it, is_new] = links_.try_emplace(edge, static_cast<int>(links.size()));
    if (is_new) {
      const Edge& e = paths_.edges()[static_cast<std::size_t>(edge)];
      links.push_back({e.from, e.to, e.gbytes_per_s});
    }
    return it->second;
  }

  const TopologyPaths& paths_;
  const SearchRules& rules_;
  HostProblem host_;
  std::unordered_map<int, int> links_;  ///< edge -> link
};

}  // namespace

HostProblem makeHostProblem(const TopologyPaths& paths, const std::vector<int>& seats, RouteForm form,
                            const SearchRules& rules) {
  return ProblemBuilder(paths, rules).build(seats, form);
}

}  // namespace tutti
