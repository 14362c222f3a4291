#include "collectives/planner.h"

#include <algorithm>
#include <bit>

namespace tutti {
namespace {

/// Lanes start at multiples of this, so that they do not share cache lines.
constexpr std::uint64_t kLaneGrainBytes = 64;

constexpr std::uint32_t kBestSlotBytes = 128 * 1024;
constexpr std::uint32_t kLeastSlotBytes = 4096;
constexpr std::uint64_t kInboundBytes = 4 << 20;  ///< of all links that a rank receives by

constexpr std::uint64_t divideUp(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// How much a rank sends to one peer at most, and so what decides between programs: the whole input, except
/// where every peer gets a block of its own.
std::uint64_t messageBytes(const Descriptor& d) { return d.count * sizeOf(d.type); }

/// The measured table (collectives/README.md): with up to `nranks` ranks, messages of up to `packet_bytes` go
/// by packets, those of up to `one_shot_bytes` to everybody at once, and larger ones directly.
struct SizeRow {
  int nranks;
  std::uint64_t packet_bytes;
  std::uint64_t one_shot_bytes;
};
constexpr SizeRow kSizeTable[] = {
    {2, 512, 2048},
    {8, 64, 4096},
    {kMaxRanks, 64, 2048},
};

const SizeRow& sizesFor(int nranks) {
  return *std::ranges::find_if(kSizeTable, [nranks](const SizeRow& row) { return nranks <= row.nranks; });
}

/// Packets carry raw inputs: where every rank has a scalar of its own, headers have to tell it.
bool canUsePackets(const Descriptor& d, const LinkShape& shape) {
  return d.op != RedOp::premul_sum && shape.packet_bytes >= sizeOf(d.type);
}

/// Direct all-reduce and reduce bring results home in the slots that carried the inputs, which packets
/// cannot; the one-shot programs need no way home.
bool bringsResultsHome(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce;
}

/// A lane is worth its steps only if it has a grain of its own for every rank.
std::uint32_t usefulLanes(const Descriptor& d, int nranks, const LinkShape& shape) {
  if (shape.lanes == 1) return 1;
  const std::uint64_t grains =
      divideUp(d.count * sizeOf(d.type), kLaneGrainBytes * static_cast<std::uint64_t>(nranks));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(grains, 1, shape.lanes));
}

/// Sizes are powers of two, and this runs for every operation: a shift, not a division.
std::uint64_t elementsIn(std::uint32_t bytes, DataType type) {
  return bytes >> std::countr_zero(sizeOf(type));
}

struct Choice {
  Algorithm algorithm;
  SlotForm slots;
  std::string_view reason;
};

Choice chooseAutomatically(const Descriptor& d, int nranks, const LinkShape& shape) {
  const SizeRow& row = sizesFor(nranks);
  const std::uint64_t bytes = messageBytes(d);
  if (bytes <= row.packet_bytes && canUsePackets(d, shape)) {
    return {bringsResultsHome(d.collective) ? Algorithm::one_shot : Algorithm::direct, SlotForm::packets,
            "tiny: the hand-over is what counts"};
  }
  if (bytes <= row.one_shot_bytes && bringsResultsHome(d.collective)) {
    return {Algorithm::one_shot, SlotForm::plain, "small: one step is quicker than two"};
  }
  return {Algorithm::direct, SlotForm::plain, "the bytes are what counts"};
}

/// What was picked by hand, as far as the collective has it.
Choice choose(const Descriptor& d, int nranks, const LinkShape& shape, const PlanOverride& override) {
  using Pick = PlanOverride::Pick;
  using Form = PlanOverride::Form;
  if (nranks == 1) return {Algorithm::single, SlotForm::plain, "one rank"};
  Choice choice = chooseAutomatically(d, nranks, shape);
  if (override.slots == Form::plain) choice.slots = SlotForm::plain;
  if (override.slots == Form::packets && canUsePackets(d, shape)) choice.slots = SlotForm::packets;
  if (override.algorithm == Pick::ring) {
    choice.algorithm = Algorithm::ring;
    choice.slots = SlotForm::plain;
  } else if (override.algorithm == Pick::direct) {
    choice.algorithm = Algorithm::direct;
    if (bringsResultsHome(d.collective)) choice.slots = SlotForm::plain;
  } else if (override.algorithm == Pick::one_shot || choice.slots == SlotForm::packets) {
    choice.algorithm = bringsResultsHome(d.collective) ? Algorithm::one_shot : Algorithm::direct;
  }
  if (override != PlanOverride{}) choice.reason = "picked by the environment";
  return choice;
}

}  // namespace

LinkShape fitShape(LinkShape shape, int nranks) {
  if (shape.slot_bytes != 0) return shape;
  const std::uint64_t slots =
      std::uint64_t{shape.slot_count} * shape.lanes * static_cast<std::uint64_t>(std::max(1, nranks - 1));
  const std::uint64_t share = kInboundBytes / slots / kLeastSlotBytes * kLeastSlotBytes;
  shape.slot_bytes =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, kLeastSlotBytes, kBestSlotBytes));
  return shape;
}

PlannedOperation planOperation(const Descriptor& descriptor, int nranks, const LinkShape& shape,
                               const PlanOverride& override) {
  const Choice choice = choose(descriptor, nranks, shape, override);
  const bool is_plain = choice.slots == SlotForm::plain;
  return {
      {
          .algorithm = choice.algorithm,
          .slots = choice.slots,
          .descriptor = descriptor,
          .nranks = nranks,
          .lanes = is_plain ? usefulLanes(descriptor, nranks, shape) : 1,  // there is one set of packet links
          .slot_elements = elementsIn(is_plain ? shape.slot_bytes : shape.packet_bytes, descriptor.type),
      },
      choice.reason};
}

Plan makePointToPointPlan(const Descriptor& descriptor, int nranks, const LinkShape& shape) {
  return {.algorithm = Algorithm::direct,
          .descriptor = descriptor,
          .nranks = nranks,
          .slot_elements = elementsIn(shape.slot_bytes, descriptor.type)};
}

LaneWork laneWork(const Plan& plan, int rank, std::uint32_t lane) {
  const Descriptor& d = plan.descriptor;
  std::uint64_t share = d.count;
  if (plan.lanes > 1) {
    const std::uint64_t grain = std::max<std::uint64_t>(1, kLaneGrainBytes / sizeOf(d.type));
    share = divideUp(divideUp(d.count, plan.lanes), grain) * grain;
  }
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
