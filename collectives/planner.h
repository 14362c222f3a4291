// From what was asked for to how it is done. Pure functions: every rank computes the same.
#pragma once

#include "collectives/lane_work.h"
#include "runtime/core/plan.h"

namespace tutti {

/// Lanes on GPUs, where they are left open.
inline constexpr std::uint32_t kGpuLanes = 8;

/// The shape with its slot size chosen, where it is left open: what all links by which a rank receives from
/// ranks of its host may take is bounded, however many there are. `host_ranks`: of the host that has most.
LinkShape fitShape(LinkShape shape, int host_ranks);

/// A plan and why it was chosen, in a few words for people.
struct PlannedOperation {
  Plan plan;
  std::string_view reason;
};

/// The plan of an operation on a communicator whose links have `shape`.
PlannedOperation planOperation(const Descriptor& descriptor, const Layout& layout, const LinkShape& shape,
                               const PlanOverride& override);

inline Plan makePlan(const Descriptor& descriptor, const Layout& layout, const LinkShape& shape,
                     const PlanOverride& override = {}) {
  return planOperation(descriptor, layout, shape, override).plan;
}

/// The plan of a send or a receive of descriptor.count elements: always direct, over one lane.
Plan makePointToPointPlan(const Descriptor& descriptor, int nranks, const LinkShape& shape);

}  // namespace tutti
