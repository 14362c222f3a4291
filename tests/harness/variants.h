// The ways in which a collective can be carried out, for suites that go through all of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/core/plan.h"

namespace tutti::test {

struct Variant {
  PlanOverride plan;
  const char* text;
  bool between_hosts = false;  ///< several rounds are under way at once there
};

inline constexpr Variant kVariants[] = {
    {{PlanOverride::Pick::ring, PlanOverride::Form::automatic}, "ring"},
    {{PlanOverride::Pick::direct, PlanOverride::Form::plain}, "direct/slots"},
    {{PlanOverride::Pick::one_shot, PlanOverride::Form::plain}, "one_shot/slots"},
    {{PlanOverride::Pick::automatic, PlanOverride::Form::packets}, "packets"},
    {{PlanOverride::Pick::hierarchical, PlanOverride::Form::automatic}, "hierarchical", true},
    {{PlanOverride::Pick::ring, PlanOverride::Form::automatic}, "ring_between_hosts", true},
    {{PlanOverride::Pick::direct, PlanOverride::Form::plain}, "direct_between_hosts", true},
};

/// Those that go round the ring, where it is picked.
inline constexpr Collective kRingCollectives[] = {Collective::all_reduce, Collective::reduce_scatter,
                                                  Collective::all_gather, Collective::broadcast,
                                                  Collective::reduce};

/// Orders of ranks in rings, as one draws them.
template <class Random>
std::vector<std::vector<int>> randomOrders(int nranks, int count, Random& random) {
  std::vector<std::vector<int>> orders(static_cast<std::size_t>(count));
  for (auto& order : orders) {
    for (int rank = 0; rank < nranks; ++rank) order.push_back(rank);
    std::ranges::shuffle(order, random);
  }
  return orders;
}

/// Where the ranks are: on one host, or sometimes on two large hosts, sometimes on many small ones.
inline Layout layoutFor(const Variant& variant, int nranks) {
  if (!variant.between_hosts || nranks == 1) return Layout::oneHost(nranks);
  int ranks_per_host = 1;
  for (int m = 1; m <= nranks / 2; ++m) {
    if (nranks % m != 0) continue;
    ranks_per_host = m;
    if (nranks % 4 == 0 && m > 1) break;
  }
  return {nranks, nranks / ranks_per_host, ranks_per_host};
}

}  // namespace tutti::test
