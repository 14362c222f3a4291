// Routes and packings against exhaustive search on small random machines.
#include "runtime/topology/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <numeric>
#include <queue>
#include <random>

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// The leg with fewest links, by nodes in order (Dijkstra without weights).
Leg shortest(const ChannelProblem& problem, int from, int to) {
  std::vector<int> by(64, -1);
  std::vector<bool> seen(64);
  std::queue<int> queue({from});
  seen[at(from)] = true;
  while (!queue.empty()) {
    const int node = queue.front();
    queue.pop();
    for (std::size_t i = 0; i < problem.links.size(); ++i) {
      const int next = problem.links[i].to;
      if (problem.links[i].from != node || seen[at(next)]) continue;
      seen[at(next)] = true;
      by[at(next)] = static_cast<int>(i);
      queue.push(next);
    }
  }
  Leg leg{PathClass::pix, {}};
  if (!seen[at(to)]) return {};
  for (int node = to; node != from; node = problem.links[at(by[at(node)])].from)
    leg.links.push_back({by[at(node)]});
  std::ranges::reverse(leg.links);
  return leg;
}

void makeLegs(ChannelProblem& problem) {
  for (const int a : problem.places) {
    for (const int b : problem.places) problem.between.push_back(shortest(problem, a, b));
  }
  for (const int port : problem.ports) {
    for (const int place : problem.places) {
      problem.in.push_back(shortest(problem, port, place));
      problem.out.push_back(shortest(problem, place, port));
    }
  }
}

void connect(ChannelProblem& problem, int a, int b, double there, double back) {
  problem.links.push_back({a, b, there});
  problem.links.push_back({b, a, back});
}

/// Places 0 to n - 1, at two switches (10, 11) under one root (12), some with direct links; ports (20, 21) at
/// the switches. Rates are small whole numbers, so that sharing comes out in many ways.
ChannelProblem randomProblem(std::mt19937& random, int places, RouteForm form) {
  const auto rate = [&random] { return std::uniform_int_distribution(1, 12)(random) * 1.0; };
  const auto chance = [&random](double p) { return std::bernoulli_distribution(p)(random); };
  const auto link = [&](ChannelProblem& problem, int a, int b) {
    const double there = rate();
    connect(problem, a, b, there, chance(0.7) ? there : rate());
  };
  ChannelProblem problem;
  problem.form = form;
  const bool is_intel = chance(0.3);
  for (int p = 0; p < places; ++p) {
    problem.places.push_back(p);
    link(problem, p, chance(0.5) ? 10 : 11);
  }
  link(problem, 10, 12);
  link(problem, 11, 12);
  for (int a = 0; a < places; ++a) {
    for (int b = 0; b < a; ++b) {
      if (chance(0.4)) link(problem, a, b);
    }
  }
  if (hasPorts(form)) {
    problem.ports = {20, 21};
    link(problem, 20, 10);
    link(problem, 21, chance(0.5) ? 10 : 11);
  }
  makeLegs(problem);
  for (Leg& leg : problem.between) {
    if (!is_intel || leg.links.size() < 3) continue;  // through the root
    for (LinkUse& use : leg.links) use.tenths = 12;
  }
  return problem;
}

/// What the route through these ranks, in this order, uses, by the definition of the forms.
std::vector<int> usesOf(const ChannelProblem& problem, const std::vector<int>& order, std::size_t in,
                        std::size_t out) {
  std::vector<int> uses(problem.links.size());
  const auto take = [&uses](const Leg& leg) {
    for (const LinkUse& use : leg.links) uses[at(use.link)] += use.tenths;
  };
  const std::size_t n = order.size();
  for (std::size_t i = 0; i + 1 < n; ++i) {
    take(problem.leg(at(order[i]), at(order[i + 1])));
    if (isBothWays(problem.form)) take(problem.leg(at(order[i + 1]), at(order[i])));
  }
  if (problem.form == RouteForm::ring) take(problem.leg(at(order[n - 1]), at(order[0])));
  if (problem.form == RouteForm::ported_ring) {
    take(problem.legIn(in, at(order[0])));
    take(problem.legOut(out, at(order[n - 1])));
  }
  if (problem.form == RouteForm::ported_chain) {
    take(problem.legIn(in, at(order[0])));
    take(problem.legOut(in, at(order[0])));
  }
  return uses;
}

/// What every route uses.
std::vector<std::vector<int>> allUses(const ChannelProblem& problem, bool crosses) {
  std::vector<std::vector<int>> found;
  std::vector<int> order(problem.count());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t ports = hasPorts(problem.form) ? problem.ports.size() : 1;
  do {
    for (std::size_t in = 0; in < ports; ++in) {
      for (std::size_t out = 0; out < ports; ++out) {
        if (in != out && (!crosses || isBothWays(problem.form))) continue;
        found.push_back(usesOf(problem, order, in, out));
      }
    }
  } while (std::ranges::next_permutation(order).found);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

double speedOf(const ChannelProblem& problem, const std::vector<int>& uses) {
  double speed = 1e30;
  for (std::size_t l = 0; l < uses.size(); ++l) {
    if (uses[l] > 0) speed = std::min(speed, 10 * problem.links[l].gbytes_per_s / uses[l]);
  }
  return speed;
}

/// The most that up to `channels` routes carry together, over all multisets of routes.
double exhaustiveTotal(const ChannelProblem& problem, bool crosses, int channels) {
  const auto routes = allUses(problem, crosses);
  double best = 0;
  std::vector<int> sum(problem.links.size());
  std::function<void(std::size_t, int)> choose = [&](std::size_t first, int count) {
    if (count > 0) best = std::max(best, count * speedOf(problem, sum));
    if (count == channels) return;
    for (std::size_t r = first; r < routes.size(); ++r) {
      for (std::size_t l = 0; l < sum.size(); ++l) sum[l] += routes[r][l];
      choose(r, count + 1);
      for (std::size_t l = 0; l < sum.size(); ++l) sum[l] -= routes[r][l];
    }
  };
  choose(0, 0);
  return best;
}

Packing packAll(const ChannelProblem& problem, bool crosses, int channels, double worth) {
  const RouteRules rules{.crosses_ports = crosses};
  return pack(problem, findRoutes(problem, rules), findCuts(problem, rules), {channels, worth});
}

struct Scope {
  RouteForm form;
  int places;
  bool crosses;
  int channels;
  int seeds;
};

TEST(Packing, IsTheBestThatExhaustiveSearchFinds) {
  constexpr Scope kScopes[] = {
      {RouteForm::ring, 2, false, 6, 100},       {RouteForm::ring, 3, false, 6, 100},
      {RouteForm::ring, 4, false, 5, 100},       {RouteForm::ring, 5, false, 3, 60},
      {RouteForm::ring, 6, false, 2, 20},        {RouteForm::chain, 4, false, 4, 60},
      {RouteForm::ported_ring, 3, false, 4, 60}, {RouteForm::ported_ring, 3, true, 3, 60},
      {RouteForm::ported_ring, 4, true, 2, 30},  {RouteForm::ported_chain, 4, false, 3, 30},
  };
  std::uint64_t most_steps = 0;
  for (const Scope& scope : kScopes) {
    for (int seed = 0; seed < scope.seeds; ++seed) {
      std::mt19937 random(static_cast<unsigned>(seed));
      const ChannelProblem problem = randomProblem(random, scope.places, scope.form);
      const Packing packing = packAll(problem, scope.crosses, scope.channels, 1);
      const double expected = exhaustiveTotal(problem, scope.crosses, scope.channels);
      ASSERT_NEAR(packing.total(), expected, 1e-6)
          << "seed " << seed << ", " << scope.places << " places, form " << static_cast<int>(scope.form);
      EXPECT_TRUE(packing.is_proven) << "seed " << seed << ", " << scope.places << " places";
      most_steps = std::max(most_steps, packing.steps);
    }
  }
  std::cout << "most steps: " << most_steps << " of " << PackingRules{}.most_steps << "\n";
}

}  // namespace
}  // namespace tutti
