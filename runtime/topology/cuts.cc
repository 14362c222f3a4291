#include "runtime/topology/cuts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Every set of places costs one flow.
constexpr std::size_t kMostPlacesForAllSets = 8;
constexpr double kEnough = 1e-9;

/// Maximum flow from some nodes to others along links that some leg uses (Edmonds and Karp).
class Flow {
 public:
  Flow(const ChannelProblem& problem, std::vector<bool> used_links)
      : problem_(problem), used_(std::move(used_links)) {
    for (std::size_t i = 0; i < problem.links.size(); ++i) {
      if (!used_[i]) continue;
      const int link = static_cast<int>(i);
      touching_[problem.links[i].from].push_back(link);
      touching_[problem.links[i].to].push_back(link);
    }
  }

  /// The links from where the flow still reaches to where it does not.
  std::vector<int> narrowest(const std::vector<int>& sources, const std::vector<int>& sinks) {
    flow_.assign(problem_.links.size(), 0);
    while (push(sources, sinks)) {
    }
    std::vector<int> cut;
    for (std::size_t i = 0; i < problem_.links.size(); ++i) {
      const ChannelProblem::Link& link = problem_.links[i];
      if (used_[i] && reached_.contains(link.from) && !reached_.contains(link.to)) {
        cut.push_back(static_cast<int>(i));
      }
    }
    return cut;
  }

 private:
  double room(int link, int from) const {
    const ChannelProblem::Link& it = problem_.links[at(link)];
    return it.from == from ? it.gbytes_per_s - flow_[at(link)] : flow_[at(link)];
  }
  int otherEnd(int link, int from) const {
    const ChannelProblem::Link& it = problem_.links[at(link)];
    return it.from == from ? it.to : it.from;
  }

  /// More along a shortest way. false: there is none.
  bool push(const std::vector<int>& sources, const std::vector<int>& sinks) {
    reached_.clear();
    std::vector<int> queue = sources;
    for (const int source : sources) reached_[source] = -1;
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const int node = queue[next];
      if (std::ranges::find(sinks, node) != sinks.end()) {
        follow(node);
        return true;
      }
      for (const int link : touching_[node]) {
        const int other = otherEnd(link, node);
        if (reached_.contains(other) || room(link, node) <= kEnough) continue;
        reached_[other] = link;
        queue.push_back(other);
      }
    }
    return false;
  }

  void follow(int sink) {
    double most = 1e30;
    forWay(sink, [&](int link, int from) { most = std::min(most, room(link, from)); });
    forWay(sink, [&](int link, int from) {
      flow_[at(link)] += problem_.links[at(link)].from == from ? most : -most;
    });
  }

  template <typename Visit>
  void forWay(int node, Visit visit) {
    for (int link = reached_[node]; link >= 0; link = reached_[node]) {
      node = otherEnd(link, node);
      visit(link, node);
    }
  }

  const ChannelProblem& problem_;
  std::vector<bool> used_;
  std::unordered_map<int, std::vector<int>> touching_;
  std::unordered_map<int, int> reached_;  ///< node -> the link that it was reached by
  std::vector<double> flow_;
};

std::vector<bool> usedLinks(const ChannelProblem& problem, const RouteRules& rules) {
  std::vector<bool> used(problem.links.size());
  const auto mark = [&used](const std::vector<Leg>& legs, PathClass worst) {
    for (const Leg& leg : legs) {
      if (leg.path_class > worst) continue;
      for (const LinkUse& use : leg.links) used[at(use.link)] = true;
    }
  };
  mark(problem.between, rules.inside);
  mark(problem.in, rules.to_ports);
  mark(problem.out, rules.to_ports);
  return used;
}

/// Proper ones, as bits.
std::vector<std::uint64_t> setsOfPlaces(std::size_t count) {
  const std::uint64_t all = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  std::vector<std::uint64_t> sets;
  if (count <= kMostPlacesForAllSets) {
    for (std::uint64_t set = 1; set < all; ++set) sets.push_back(set);
    return sets;
  }
  for (std::size_t place = 0; place < count; ++place) {
    sets.push_back(std::uint64_t{1} << place);
    sets.push_back(all & ~(std::uint64_t{1} << place));
  }
  return sets;
}

/// How often a both-ways chain leaves a place: each of its legs leaves two, the one to the port one.
int leavings(const ChannelProblem& problem) {
  return 2 * static_cast<int>(problem.count() - 1) + (hasPorts(problem.form) ? 1 : 0);
}

/// All links out of single places: the inner places of a both-ways chain are left twice, which the cut around
/// one alone does not know, since that may be an end. None where two places share such a link.
std::optional<Cut> aroundAllPlaces(const ChannelProblem& problem, const std::vector<Cut>& around_each) {
  Cut all{{}, leavings(problem)};
  for (const Cut& cut : around_each) all.links.insert(all.links.end(), cut.links.begin(), cut.links.end());
  std::ranges::sort(all.links);
  if (std::ranges::adjacent_find(all.links) != all.links.end()) return std::nullopt;
  return all;
}

double width(const ChannelProblem& problem, const Cut& cut) {
  const double sum = std::accumulate(cut.links.begin(), cut.links.end(), 0.0, [&problem](double s, int link) {
    return s + problem.links[at(link)].gbytes_per_s;
  });
  return sum / cut.uses;
}

}  // namespace

std::vector<Cut> findCuts(const ChannelProblem& problem, const RouteRules& rules) {
  Flow flow(problem, usedLinks(problem, rules));
  // Who leaves by the port that he came in by comes round: with that port on whichever side, he passes.
  const bool port_is_an_end = problem.form == RouteForm::ported_ring && rules.crosses_ports;
  std::vector<Cut> cuts;
  std::vector<Cut> around_each;
  for (const std::uint64_t set : setsOfPlaces(problem.count())) {
    std::vector<int> sources;
    std::vector<int> sinks;
    for (std::size_t place = 0; place < problem.count(); ++place) {
      ((set >> place & 1) != 0 ? sources : sinks).push_back(problem.places[place]);
    }
    if (port_is_an_end) sinks.insert(sinks.end(), problem.ports.begin(), problem.ports.end());
    cuts.push_back({flow.narrowest(sources, sinks)});
  }
  if (hasPorts(problem.form)) {
    cuts.push_back({flow.narrowest(problem.places, problem.ports)});
    cuts.push_back({flow.narrowest(problem.ports, problem.places)});
  }
  if (isBothWays(problem.form) && problem.count() > 1) {
    for (const int place : problem.places) {
      std::vector<int> others = problem.ports;
      std::ranges::copy_if(problem.places, std::back_inserter(others), [place](int p) { return p != place; });
      around_each.push_back({flow.narrowest({place}, others)});
    }
    if (const auto all = aroundAllPlaces(problem, around_each)) cuts.push_back(*all);
  }
  std::ranges::sort(cuts);
  const auto repeated = std::ranges::unique(cuts);
  cuts.erase(repeated.begin(), repeated.end());
  std::ranges::stable_sort(cuts, {}, [&problem](const Cut& cut) { return width(problem, cut); });
  return cuts;
}

}  // namespace tutti
