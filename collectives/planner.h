// From what was asked for to how it is done. Pure functions: every rank computes the same.
#pragma once

#include "runtime/core/plan.h"

namespace tutti {

/// The shape with its slot size chosen, where it is left open: what all links that a rank receives by may
/// take is bounded, however many ranks there are.
LinkShape fitShape(LinkShape shape, int nranks);

/// A plan and why it was chosen, in a few words for people.
struct PlannedOperation {
  Plan plan;
  std::string_view reason;
};

/// The plan of an operation on a communicator of `nranks` ranks whose links have `shape`.
PlannedOperation planOperation(const Descriptor& descriptor, int nranks, const LinkShape& shape,
                               const PlanOverride& override);

inline Plan makePlan(const Descriptor& descriptor, int nranks, const LinkShape& shape,
                     const PlanOverride& override = {}) {
  return planOperation(descriptor, nranks, shape, override).plan;
}

/// The plan of a send or a receive of descriptor.count elements: always direct, over one lane.
Plan makePointToPointPlan(const Descriptor& descriptor, int nranks, const LinkShape& shape);

/// What `rank` does in `lane` of the plan. The lanes' element ranges partition the operation.
LaneWork laneWork(const Plan& plan, int rank, std::uint32_t lane);

}  // namespace tutti
