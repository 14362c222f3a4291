#include "runtime/topology/slot_packing.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Rates are sums and quotients of a few numbers: what is closer than this is equal.
constexpr double kSame = 1e-9;
/// Prices have gone through a few hundred roundings.
constexpr double kPriceRounding = 1e-6;
/// Cuts looked at while routes are tried.
constexpr std::size_t kMostCuts = 16;

/// By link: how much of channels of a speed it takes, in tenths of a channel.
std::vector<int> slotsAt(const ChannelProblem& problem, double speed) {
  std::vector<int> slots;
  for (const ChannelProblem::Link& link : problem.links) {
    slots.push_back(static_cast<int>(std::min(10 * link.gbytes_per_s / speed * (1 + kSame), 1e6)));
  }
  return slots;
}

class Room {
 public:
  explicit Room(const PackingInput& input)
      : prices_(input.prices.by_link), least_uses_(leastUses(input.problem)) {
    cuts_.reserve(input.cuts.size());
    for (const Cut& cut : input.cuts) cuts_.push_back(&cut);
  }

  /// Keeps to the cuts that leave least; among equals to the first.
  void keepTightest(const std::vector<int>& slots) {
    if (cuts_.size() <= kMostCuts) return;
    std::vector<std::pair<std::size_t, std::size_t>> by_room;  // and their place
    by_room.reserve(cuts_.size());
    for (std::size_t i = 0; i < cuts_.size(); ++i) by_room.emplace_back(through(*cuts_[i], slots), i);
    std::ranges::nth_element(by_room, by_room.begin() + kMostCuts);
    std::vector<const Cut*> kept;
    for (std::size_t i = 0; i < kMostCuts; ++i) kept.push_back(cuts_[by_room[i].second]);
    cuts_ = std::move(kept);
  }

  std::size_t in(const std::vector<int>& slots, std::size_t most) const {
    for (const Cut* cut : cuts_) most = std::min(most, through(*cut, slots));
    if (prices_.empty()) return most;
    double worth = 0;
    for (std::size_t link = 0; link < slots.size(); ++link) worth += prices_[link] * slots[link];
    return std::min(most, static_cast<std::size_t>(worth / 10 + kPriceRounding));
  }

 private:
  std::size_t through(const Cut& cut, const std::vector<int>& slots) const {
    std::size_t sum = 0;
    for (const int link : cut) sum += at(slots[at(link)] / least_uses_[at(link)]);
    return sum;
  }

  const std::vector<double>& prices_;
  std::vector<int> least_uses_;
  std::vector<const Cut*> cuts_;
};

class SlotPacking {
 public:
  SlotPacking(const PackingInput& input, double speed, std::size_t least, std::size_t most,
              std::uint64_t most_steps)
      : input_(input),
        room_(input),
        slots_(slotsAt(input.problem, speed)),
        least_(least),
        most_(most),
        most_steps_(most_steps) {
    room_.keepTightest(slots_);
  }

  SlotChoice run() {
    choose(0);
    return std::move(best_);
  }

 private:
  bool fits(const Route& route) const {
    for (std::size_t link = 0; link < slots_.size(); ++link) {
      if (route.uses[link] > slots_[link]) return false;
    }
    return true;
  }
  void add(const Route& route, int sign) {
    for (std::size_t link = 0; link < slots_.size(); ++link) slots_[link] -= sign * route.uses[link];
  }

  /// Routes from the `first` in order on: each set of them is met once. The same one first: alike channels
  /// are simpler.
  void choose(std::size_t first) {
    if (chosen_.size() > least_) {
      best_.routes = chosen_;
      least_ = chosen_.size();
    }
    const std::size_t room = room_.in(slots_, most_ - chosen_.size());
    for (std::size_t i = first; i < input_.order.size(); ++i) {
      if (chosen_.size() + room <= least_) return;
      if (best_.steps == most_steps_) {
        best_.ran_out = true;
        return;
      }
      ++best_.steps;
      const Route& route = input_.routes[at(input_.order[i])];
      if (!fits(route)) continue;
      add(route, 1);
      chosen_.push_back(input_.order[i]);
      choose(i);
      chosen_.pop_back();
      add(route, -1);
    }
  }

  const PackingInput& input_;
  Room room_;
  std::vector<int> slots_;  ///< what links still take
  std::vector<int> chosen_;
  SlotChoice best_;
  std::size_t least_;
  std::size_t most_;
  std::uint64_t most_steps_;
};

}  // namespace

PackingInput makePackingInput(const ChannelProblem& problem, const std::vector<Route>& routes,
                              const std::vector<Cut>& cuts) {
  PackingInput input{problem, routes, cuts, priceLinks(problem, routes), std::vector<int>(routes.size())};
  std::iota(input.order.begin(), input.order.end(), 0);
  std::ranges::stable_sort(input.order, [&prices = input.prices](int a, int b) {
    if (prices.use_gbytes[at(a)] != prices.use_gbytes[at(b)]) {
      return prices.use_gbytes[at(a)] > prices.use_gbytes[at(b)];
    }
    return prices.by_route[at(a)] < prices.by_route[at(b)];
  });
  return input;
}

std::size_t mostChannels(const PackingInput& input, double speed) {
  return Room(input).in(slotsAt(input.problem, speed), 1 << 20);
}

SlotChoice chooseRoutes(const PackingInput& input, double speed, std::size_t least, std::size_t most,
                        std::uint64_t most_steps) {
  return SlotPacking(input, speed, least, most, most_steps).run();
}

}  // namespace tutti
