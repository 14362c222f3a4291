// From what was asked for to how it is done. Pure functions: every rank computes the same.
#pragma once

#include "runtime/core/plan.h"

namespace tutti {

/// The shape with its slot size chosen, where it is left open: what all links that a rank receives by may
/// take is bounded, however many ranks there are.
LinkShape fitShape(LinkShape shape, int nranks);

/// The plan of an operation on a communicator of `nranks` ranks whose links have `shape`.
Plan makePlan(const Descriptor& descriptor, int nranks, const LinkShape& shape);

/// What `rank` does in `lane` of the plan. The lanes' element ranges partition the operation.
LaneWork laneWork(const Plan& plan, int rank, std::uint32_t lane);

}  // namespace tutti
