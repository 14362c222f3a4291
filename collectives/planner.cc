#include "collectives/planner.h"

#include <algorithm>

namespace tutti {
namespace {

/// Lanes start at multiples of this, so that they do not share cache lines.
constexpr std::uint64_t kLaneGrainBytes = 64;

constexpr std::uint64_t divideUp(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

Program chooseProgram(Collective collective, int nranks) {
  if (nranks == 1) return Program::single;
  switch (collective) {
    case Collective::all_reduce:
      return Program::ring_all_reduce;
    case Collective::reduce_scatter:
      return Program::ring_reduce_scatter;
    case Collective::all_gather:
      return Program::ring_all_gather;
    case Collective::broadcast:
      return Program::chain_broadcast;
    case Collective::reduce:
      return Program::chain_reduce;
  }
  return Program::single;
}

constexpr std::uint32_t kBestSlotBytes = 128 * 1024;
constexpr std::uint32_t kLeastSlotBytes = 4096;
constexpr std::uint64_t kInboundBytes = 4 << 20;  ///< of all links that a rank receives by

}  // namespace

LinkShape fitShape(LinkShape shape, int nranks) {
  if (shape.slot_bytes != 0) return shape;
  const std::uint64_t slots =
      std::uint64_t{shape.slot_count} * shape.lanes * static_cast<std::uint64_t>(std::max(1, nranks - 1));
  const std::uint64_t share =
      std::max<std::uint64_t>(kInboundBytes / slots, 1) / kLeastSlotBytes * kLeastSlotBytes;
  shape.slot_bytes =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, kLeastSlotBytes, kBestSlotBytes));
  return shape;
}

Plan makePlan(const Descriptor& descriptor, int nranks, const LinkShape& shape) {
  const std::uint64_t size = sizeOf(descriptor.type);
  // A lane is worth its steps only if it has a grain of its own for every rank.
  const std::uint64_t grains =
      divideUp(descriptor.count * size, kLaneGrainBytes * static_cast<std::uint64_t>(nranks));
  return {
      .program = chooseProgram(descriptor.collective, nranks),
      .descriptor = descriptor,
      .nranks = nranks,
      .lanes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(grains, 1, shape.lanes)),
      .slot_elements = shape.slot_bytes / size,
  };
}

LaneWork laneWork(const Plan& plan, int rank, std::uint32_t lane) {
  const Descriptor& d = plan.descriptor;
  const std::uint64_t grain = std::max<std::uint64_t>(1, kLaneGrainBytes / sizeOf(d.type));
  const std::uint64_t share = divideUp(divideUp(d.count, plan.lanes), grain) * grain;
  return {
      .nranks = plan.nranks,
      .rank = rank,
      .root = d.root,
      .count = d.count,
      .begin = std::min(d.count, share * lane),
      .end = std::min(d.count, share * (lane + 1)),
      .slot_elements = plan.slot_elements,
  };
}

}  // namespace tutti
