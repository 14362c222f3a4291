// From a plan to what one rank does in one lane of it: every executor asks, where its programs run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/core/plan.h"
#include "runtime/core/ring_orders.h"

namespace tutti {

/// Lanes start at multiples of this, so that they do not share cache lines.
inline constexpr std::uint64_t kLaneGrainBytes = 64;

constexpr std::uint64_t divideUp(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// What `rank` does in `lane` of the plan. The lanes' element ranges partition the operation.
constexpr LaneWork laneWork(const Plan& plan, int rank, std::uint32_t lane, const RingOrders& rings = {}) {
  const Descriptor& d = plan.descriptor;
  std::uint64_t share = d.count;
  if (plan.lanes > 1) {
    const std::uint64_t grain = std::max<std::uint64_t>(1, kLaneGrainBytes / sizeOf(d.type));
    share = divideUp(divideUp(d.count, plan.lanes), grain) * grain;
  }
  return {
      .nranks = plan.nranks,
      .rank = rank,
      .ranks_per_host = plan.ranks_per_host,
      .root = d.root,
      .count = d.count,
      .begin = std::min(d.count, share * lane),
      .end = std::min(d.count, share * (lane + 1)),
      .depth = plan.depth,
      .slot_elements = plan.slot_elements,
      .ring = rings.of(lane, plan.nranks),
  };
}

}  // namespace tutti
