#include "runtime/topology/packing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/topology/bandwidths.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Rates are sums and quotients of a few numbers: what is closer than this is equal.
constexpr double kSame = 1e-9;
/// Of all steps, so many parts for one speed at most.
constexpr std::uint64_t kStepsPart = 8;
constexpr int kMostUses = 1 << 14;
/// Cuts looked at while routes are tried.
constexpr std::size_t kMostCuts = 16;

constexpr int kTenths = 10;

/// In tenths: how much of channels of a speed a link takes.
int slotsIn(double gbytes_per_s, double speed) {
  return static_cast<int>(std::min(kTenths * gbytes_per_s / speed * (1 + kSame), 1e6));
}

/// By link: the least that a leg takes of it, in tenths.
std::vector<int> leastUses(const ChannelProblem& problem) {
  std::vector<int> least(problem.links.size(), 1 << 20);
  for (const std::vector<Leg>* legs : {&problem.between, &problem.in, &problem.out}) {
    for (const Leg& leg : *legs) {
      for (const LinkUse& use : leg.links) least[at(use.link)] = std::min(least[at(use.link)], use.tenths);
    }
  }
  return least;
}

/// Most routes that fit on links with so many places each.
class SlotPacking {
 public:
  SlotPacking(const ChannelProblem& problem, const std::vector<Route>& routes, const std::vector<Cut>& cuts,
              double speed)
      : routes_(routes), least_uses_(leastUses(problem)) {
    for (const ChannelProblem::Link& link : problem.links)
      slots_.push_back(slotsIn(link.gbytes_per_s, speed));
    cuts_ = cuts;
    std::ranges::stable_sort(cuts_, {}, [this](const Cut& cut) { return slotsOf(cut); });
    if (cuts_.size() > kMostCuts) cuts_.resize(kMostCuts);
  }

  /// Tries for more than `least`, at most `most`. Empty: there are none, or steps ran out.
  std::vector<int> find(std::size_t least, std::size_t most, std::uint64_t steps) {
    least_ = least;
    most_ = most;
    steps_left_ = steps;
    choose(0);
    return best_;
  }
  std::uint64_t stepsLeft() const { return steps_left_; }

 private:
  std::size_t slotsOf(const Cut& cut) const {
    std::size_t sum = 0;
    for (const int link : cut.links) sum += at(slots_[at(link)] / least_uses_[at(link)]);
    return sum / at(cut.uses);
  }
  std::size_t roomLeft() const {
    std::size_t room = most_ - chosen_.size();
    for (const Cut& cut : cuts_) room = std::min(room, slotsOf(cut));
    return room;
  }

  bool fits(const Route& route) const {
    for (std::size_t link = 0; link < slots_.size(); ++link) {
      if (route.uses[link] > slots_[link]) return false;
    }
    return true;
  }
  void add(const Route& route, int sign) {
    for (std::size_t link = 0; link < slots_.size(); ++link) slots_[link] -= sign * route.uses[link];
  }

  /// Routes from `first` on: each set of them is met once. The same one first: alike channels are simpler.
  void choose(std::size_t first) {
    if (chosen_.size() > least_) {
      best_ = chosen_;
      least_ = chosen_.size();
    }
    for (std::size_t route = first; route < routes_.size(); ++route) {
      if (steps_left_ == 0 || chosen_.size() + roomLeft() <= least_) return;
      --steps_left_;
      if (!fits(routes_[route])) continue;
      add(routes_[route], 1);
      chosen_.push_back(static_cast<int>(route));
      choose(route);
      chosen_.pop_back();
      add(routes_[route], -1);
    }
  }

  const std::vector<Route>& routes_;
  std::vector<int> least_uses_;
  std::vector<int> slots_;  ///< by link, in tenths: what it still takes
  std::vector<Cut> cuts_;
  std::vector<int> chosen_;
  std::vector<int> best_;
  std::size_t least_ = 0;
  std::size_t most_ = 0;
  std::uint64_t steps_left_ = 0;
};

struct Speed {
  double gbytes_per_s = 0;
  std::size_t most_channels = 0;  ///< by the cuts

  double bound() const { return static_cast<double>(most_channels) * gbytes_per_s; }
};

std::size_t channelsThrough(const ChannelProblem& problem, const std::vector<int>& least_uses, const Cut& cut,
                            double speed) {
  std::size_t sum = 0;
  for (const int link : cut.links) {
    sum += at(slotsIn(problem.links[at(link)].gbytes_per_s, speed) / least_uses[at(link)]);
  }
  return sum / at(cut.uses);
}

/// All sums of uses are multiples of it.
int commonStep(const ChannelProblem& problem) {
  int step = kTenths * 12;
  for (const std::vector<Leg>* legs : {&problem.between, &problem.in, &problem.out}) {
    for (const Leg& leg : *legs) {
      for (const LinkUse& use : leg.links) step = std::gcd(step, use.tenths);
    }
  }
  return step;
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
  Packer(const ChannelProblem& problem, const Routes& routes, const std::vector<Cut>& cuts,
         const PackingRules& rules)
      : problem_(problem),
        routes_(routes.routes),
        cuts_(cuts),
        rules_(rules),
        best_(oneChannel(problem, routes.routes)),
        steps_left_(rules.most_steps) {}

  Packing run() {
    if (best_.routes.empty()) return best_;
    for (int most = 2; most / 2 < rules_.most_channels; most *= 2) {
      tryUpTo(at(std::min(most, rules_.most_channels)));
    }
    best_.is_proven = unproven_ <= best_.total() * rules_.worth * (1 + kSame);
    best_.steps = rules_.most_steps - steps_left_;
    return best_;
  }

 private:
  /// The speeds at which more than `least` could be carried, the most promising first, among equals the
  /// fastest.
  std::vector<Speed> promisingSpeeds(double least, std::size_t most_channels) const {
    std::vector<double> rates;
    for (const ChannelProblem::Link& link : problem_.links) rates.push_back(link.gbytes_per_s);
    std::ranges::sort(rates);
    rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
    const double slowest = least / static_cast<double>(most_channels) * (1 - kSame);
    const int step = commonStep(problem_);
    std::vector<double> speeds;
    for (const double rate : rates) {
      for (int uses = step; kTenths * rate / uses >= slowest && uses <= kMostUses; uses += step) {
        speeds.push_back(kTenths * rate / uses);
      }
    }
    std::ranges::sort(speeds, std::ranges::greater{});
    std::vector<Speed> found;
    for (const double speed : speeds) {
      if (!found.empty() && found.back().gbytes_per_s <= speed * (1 + kSame)) continue;
      std::size_t most = most_channels;
      for (const Cut& cut : cuts_) most = std::min(most, channelsThrough(problem_, least_uses_, cut, speed));
      found.push_back({speed, most});
    }
    std::erase_if(found, [least](const Speed& s) { return s.bound() < least * (1 - kSame); });
    std::ranges::stable_sort(found, std::ranges::greater{}, &Speed::bound);
    return found;
  }

  /// What is found first must be worth more channels; after that, more is more, and as much by fewer better.
  void tryUpTo(std::size_t most_channels) {
    const double needed = best_.total() * rules_.worth;
    bool is_found = false;
    for (const Speed& speed : promisingSpeeds(needed, most_channels)) {
      const double least_total = std::max(needed, best_.total());
      const bool may_equal = is_found && speed.gbytes_per_s > best_.gbytes_per_s * (1 + kSame);
      const double count = least_total / speed.gbytes_per_s;
      const auto least = static_cast<std::size_t>(may_equal ? std::ceil(count * (1 - kSame)) - 1
                                                            : std::floor(count * (1 + kSame)));
      if (speed.most_channels <= least) continue;
      SlotPacking packing(problem_, routes_, cuts_, speed.gbytes_per_s);
      const std::uint64_t budget = std::min(steps_left_, rules_.most_steps / kStepsPart);
      const std::vector<int> chosen = packing.find(least, speed.most_channels, budget);
      steps_left_ -= budget - packing.stepsLeft();
      if (packing.stepsLeft() == 0) unproven_ = std::max(unproven_, speed.bound());
      if (chosen.size() <= least) continue;
      best_.routes = chosen;
      best_.gbytes_per_s = speed.gbytes_per_s;
      is_found = true;
    }
  }

  const ChannelProblem& problem_;
  const std::vector<Route>& routes_;
  const std::vector<Cut>& cuts_;
  const PackingRules& rules_;
  std::vector<int> least_uses_ = leastUses(problem_);
  Packing best_;
  double unproven_ = 0;  ///< the most that could be, where steps ran out
  std::uint64_t steps_left_;
};

}  // namespace

Packing pack(const ChannelProblem& problem, const Routes& routes, const std::vector<Cut>& cuts,
             const PackingRules& rules) {
  Packing packing = Packer(problem, routes, cuts, rules).run();
  if (routes.is_complete || packing.routes.empty()) return packing;
  // Routes were left out, but what no routes can exceed is reached.
  std::size_t bound = at(rules.most_channels);
  const std::vector<int> least_uses = leastUses(problem);
  for (const Cut& cut : cuts) {
    bound = std::min(bound, channelsThrough(problem, least_uses, cut, packing.gbytes_per_s));
  }
  packing.is_proven = packing.is_proven && bound <= packing.routes.size();
  return packing;
}

}  // namespace tutti
