#include "runtime/topology/packing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/topology/bandwidths.h"
#include "runtime/topology/slot_packing.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

constexpr double kSame = 1e-9;
constexpr int kTenths = 10;
/// Of all steps, so many parts for one speed at most.
constexpr std::uint64_t kStepsPart = 8;

struct Speed {
  double gbytes_per_s = 0;
  std::size_t most_channels = 0;

  double bound() const { return static_cast<double>(most_channels) * gbytes_per_s; }
};

/// All sums of uses are multiples of it.
int commonStep(const ChannelProblem& problem) {
  int step = 0;
  for (const std::vector<Leg>* legs : {&problem.between, &problem.in, &problem.out}) {
    for (const Leg& leg : *legs) {
      for (const LinkUse& use : leg.links) step = std::gcd(step, use.tenths);
    }
  }
  return step;
}

/// Of a link, by one route.
int mostUses(const std::vector<Route>& routes, std::size_t link) {
  int most = 0;
  for (const Route& route : routes) most = std::max<int>(most, route.uses[link]);
  return most;
}

/// The widest route alone.
Packing oneChannel(const ChannelProblem& problem, const std::vector<Route>& routes) {
  Packing best;
  for (std::size_t r = 0; r < routes.size(); ++r) {
    double speed = kLocalGBytes;
    for (std::size_t link = 0; link < problem.links.size(); ++link) {
      const int uses = routes[r].uses[link];
      if (uses > 0) speed = std::min(speed, kTenths * problem.links[link].gbytes_per_s / uses);
    }
    if (speed > best.gbytes_per_s * (1 + kSame)) {
      best.gbytes_per_s = speed;
      best.routes = {static_cast<int>(r)};
    }
  }
  return best;
}

class Packer {
 public:
  Packer(const PackingInput& input, const PackingRules& rules, Packing one)
      : input_(input), rules_(rules), best_(std::move(one)) {}

  Packing run() {
    for (int most = 2; most / 2 < rules_.most_channels; most *= 2) {
      if (input_.prices.bound_gbytes_per_s <= best_.total() * rules_.worth * (1 + kSame)) break;
      tryUpTo(at(std::min(most, rules_.most_channels)));
    }
    best_.is_proven = unproven_ <= best_.total() * rules_.worth * (1 + kSame);
    return best_;
  }

 private:
  /// The speeds at which more than `least` could be carried, the most promising first, among equals the
  /// fastest.
  std::vector<Speed> promisingSpeeds(double least, std::size_t most_channels) const {
    const double slowest = least / static_cast<double>(most_channels) * (1 - kSame);
    const int step = commonStep(input_.problem);
    std::vector<double> speeds;
    for (std::size_t link = 0; link < input_.problem.links.size(); ++link) {
      const double rate = kTenths * input_.problem.links[link].gbytes_per_s;
      const int most_uses = mostUses(input_.routes, link) * static_cast<int>(most_channels);
      for (int uses = step; rate / uses >= slowest && uses <= most_uses; uses += step) {
        speeds.push_back(rate / uses);
      }
    }
    std::ranges::sort(speeds, std::ranges::greater{});
    std::vector<Speed> found;
    double last = kLocalGBytes * kTenths;
    for (const double speed : speeds) {
      if (last <= speed * (1 + kSame)) continue;
      last = speed;
      const Speed it{speed, std::min(most_channels, mostChannels(input_, speed))};
      if (it.bound() >= least * (1 - kSame)) found.push_back(it);
    }
    std::ranges::stable_sort(found, std::ranges::greater{}, &Speed::bound);
    return found;
  }

  /// What is found first must be worth more channels; after that, more is more, and as much by fewer better.
  void tryUpTo(std::size_t most_channels) {
    const double needed = best_.total() * rules_.worth;
    bool is_found = false;
    for (const Speed& speed : promisingSpeeds(needed, most_channels)) {
      const bool may_equal = is_found && speed.gbytes_per_s > best_.gbytes_per_s * (1 + kSame);
      const double count = std::max(needed, best_.total()) / speed.gbytes_per_s;
      const auto least = static_cast<std::size_t>(may_equal ? std::ceil(count * (1 - kSame)) - 1
                                                            : std::floor(count * (1 + kSame)));
      if (speed.most_channels <= least) continue;
      const std::uint64_t steps = std::min(rules_.most_steps - best_.steps, rules_.most_steps / kStepsPart);
      const SlotChoice choice = chooseRoutes(input_, speed.gbytes_per_s, least, speed.most_channels, steps);
      best_.steps += choice.steps;
      if (choice.ran_out) unproven_ = std::max(unproven_, speed.bound());
      if (choice.routes.empty()) continue;
      best_.routes = choice.routes;
      best_.gbytes_per_s = speed.gbytes_per_s;
      is_found = true;
    }
  }

  const PackingInput& input_;
  const PackingRules& rules_;
  Packing best_;
  double unproven_ = 0;  ///< the most that could be, where steps ran out
};

}  // namespace

Packing pack(const ChannelProblem& problem, const Routes& routes, const std::vector<Cut>& cuts,
             const PackingRules& rules) {
  Packing one = oneChannel(problem, routes.routes);
  if (one.routes.empty() || commonStep(problem) == 0 || rules.most_channels < 2) return one;
  const PackingInput input = makePackingInput(problem, routes.routes, cuts);
  Packing packing = Packer(input, rules, std::move(one)).run();
  if (routes.is_complete) return packing;
  // Routes were left out: only what no routes can exceed proves anything.
  const double bound = boundOf(problem, cuts);
  packing.is_proven = packing.is_proven && bound <= packing.total() * rules.worth * (1 + kSame);
  return packing;
}

}  // namespace tutti
