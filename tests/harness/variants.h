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
};

}  // namespace tutti::test
