#include "runtime/topology/cuts.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "runtime/topology/bandwidths.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Every set of places costs one flow.
constexpr std::size_t kMostPlacesForAllSets = 8;
constexpr std::size_t kMostPlacesForSets = 16;
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
  Cut narrowest(const std::vector<int>& sources, const std::vector<int>& sinks) {
    flow_.assign(problem_.links.size(), 0);
    while (push(sources, sinks)) {
    }
    Cut cut;
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

struct Sides {
  std::vector<int> sources;
  std::vector<int> sinks;
};

/// Every proper set of places against the rest.
std::vector<Sides> allSets(const std::vector<int>& places) {
  std::vector<Sides> all;
  for (std::uint64_t set = 1; set + 1 < std::uint64_t{1} << places.size(); ++set) {
    Sides& sides = all.emplace_back();
    for (std::size_t place = 0; place < places.size(); ++place) {
      ((set >> place & 1) != 0 ? sides.sources : sides.sinks).push_back(places[place]);
    }
  }
  return all;
}

/// The first against every other, both ways: whatever divides places, divides the first from some. And every
/// one against all others.
std::vector<Sides> someSets(const std::vector<int>& places) {
  std::vector<Sides> all;
  for (const int place : places) {
    std::vector<int> others;
    std::ranges::copy_if(places, std::back_inserter(others), [place](int other) { return other != place; });
    all.push_back({{place}, others});
    all.push_back({others, {place}});
    if (place == places.front()) continue;
    all.push_back({{places.front()}, {place}});
    all.push_back({{place}, {places.front()}});
  }
  return all;
}

std::vector<Sides> setsOf(const std::vector<int>& places) {
  if (places.size() <= kMostPlacesForAllSets) return allSets(places);
  if (places.size() <= kMostPlacesForSets) return someSets(places);
  return {};
}

double width(const ChannelProblem& problem, const std::vector<int>& least_uses, const Cut& cut) {
  double sum = 0;
  for (const int link : cut) sum += 10 * problem.links[at(link)].gbytes_per_s / least_uses[at(link)];
  return sum;
}

}  // namespace

std::vector<Cut> findCuts(const ChannelProblem& problem, const RouteRules& rules) {
  Flow flow(problem, usedLinks(problem, rules));
  // Who leaves by the port that he came in by comes round: with that port on whichever side, he passes.
  const bool port_is_an_end = problem.form == RouteForm::ported_ring && rules.crosses_ports;
  std::vector<Cut> cuts;
  for (Sides& sides : setsOf(problem.places)) {
    if (port_is_an_end) sides.sinks.insert(sides.sinks.end(), problem.ports.begin(), problem.ports.end());
    cuts.push_back(flow.narrowest(sides.sources, sides.sinks));
  }
  if (hasPorts(problem.form)) {
    cuts.push_back(flow.narrowest(problem.places, problem.ports));
    cuts.push_back(flow.narrowest(problem.ports, problem.places));
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const std::vector<int> least_uses = leastUses(problem);
  std::ranges::stable_sort(cuts, {}, [&](const Cut& cut) { return width(problem, least_uses, cut); });
  return cuts;
}

std::vector<int> leastUses(const ChannelProblem& problem) {
  std::vector<int> least(problem.links.size(), 1 << 20);
  for (const std::vector<Leg>* legs : {&problem.between, &problem.in, &problem.out}) {
    for (const Leg& leg : *legs) {
      for (const LinkUse& use : leg.links) least[at(use.link)] = std::min(least[at(use.link)], use.tenths);
    }
  }
  return least;
}

double boundOf(const ChannelProblem& problem, const std::vector<Cut>& cuts) {
  double least = kLocalGBytes;
  const std::vector<int> least_uses = leastUses(problem);
  for (const Cut& cut : cuts) least = std::min(least, width(problem, least_uses, cut));
  return least;
}

}  // namespace tutti
