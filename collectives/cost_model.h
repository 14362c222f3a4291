// What an operation will take, before it is done: the alpha-beta model. Pure functions of a plan.
//
//   time = steps * latency + bytes / bandwidth
//
// Steps are hand-overs that wait for one another; bytes are those that pass through the busiest rank in one
// direction. Nobody else's load, no slow rank, no size of caches is in it: right in the order of magnitude,
// good for comparing plans and for a budget of overlap, not a promise.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/plan.h"

namespace tutti {

/// One hop of a link.
struct LinkCost {
  double latency_us = 0;
  double gbytes_per_s = 1;  ///< decimal

  double microseconds(double steps, double bytes) const {
    return steps * latency_us + bytes / (gbytes_per_s * 1e3);
  }
};

/// Of the links of a transport, by the name that tutti/transport.h gives it. One that is not in the table
/// costs as "tcp".
LinkCost linkCost(std::string_view transport);

/// Of a communicator's links.
struct LinkCosts {
  LinkCost inside;   ///< hosts
  LinkCost between;  ///< hosts
};

/// What a plan makes its busiest rank do.
struct Effort {
  double steps = 0;
  double bytes = 0;
};
struct PlanEffort {
  Effort inside;   ///< hosts
  Effort between;  ///< hosts
};

/// `hosts`: how many the ranks of the plan are on. Where they are on several, a program that does not
/// distinguish hosts goes at the pace of the links between them.
PlanEffort effortOf(const Plan& plan, std::int32_t hosts);

/// Of one collective.
double estimateMicroseconds(const Plan& plan, std::int32_t hosts, const LinkCosts& costs);

}  // namespace tutti
