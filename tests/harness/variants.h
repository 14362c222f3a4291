// The ways in which a collective can be carried out, for suites that go through all of them.
#pragma once

#include <string>

#include "runtime/core/plan.h"

namespace tutti::test {

struct Variant {
  PlanOverride plan;
  const char* text;
};

inline constexpr Variant kVariants[] = {
    {{PlanOverride::Pick::ring, PlanOverride::Form::automatic}, "ring"},
    {{PlanOverride::Pick::direct, PlanOverride::Form::plain}, "direct/slots"},
    {{PlanOverride::Pick::one_shot, PlanOverride::Form::plain}, "one_shot/slots"},
    {{PlanOverride::Pick::automatic, PlanOverride::Form::packets}, "packets"},
    {{PlanOverride::Pick::hierarchical, PlanOverride::Form::automatic}, "hierarchical"},
};

/// Where the ranks are: on one host, but for the hierarchical program; there sometimes on two large hosts,
/// sometimes on many small ones.
inline Layout layoutFor(const Variant& variant, int nranks) {
  if (variant.plan.algorithm != PlanOverride::Pick::hierarchical) return Layout::oneHost(nranks);
  int ranks_per_host = 1;
  for (int m = 1; m <= nranks / 2; ++m) {
    if (nranks % m != 0) continue;
    ranks_per_host = m;
    if (nranks % 4 == 0 && m > 1) break;
  }
  return {nranks, nranks / ranks_per_host, ranks_per_host};
}

}  // namespace tutti::test
