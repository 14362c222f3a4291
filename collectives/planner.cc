#include "collectives/planner.h"

#include <algorithm>
#include <limits>

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

/// The measured table: for up to `nranks` ranks, messages of up to `bytes` are carried by packets. Larger
/// ones go directly. See collectives/README.md for the measurements.
struct PacketRow {
  int nranks;
  std::uint64_t bytes;
};
constexpr PacketRow kPacketTable[] = {
    {2, 2048},
    {4, 1024},
    {8, 512},
    {kMaxRanks, 256},
};

std::uint64_t packetLimit(int nranks) {
  for (const PacketRow& row : kPacketTable) {
    if (nranks <= row.nranks) return row.bytes;
  }
  return 0;
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

struct Choice {
  Algorithm algorithm;
  SlotForm slots;
  std::string_view reason;
};

Choice chooseAutomatically(const Descriptor& d, int nranks, const LinkShape& shape) {
  const bool is_small = messageBytes(d) <= packetLimit(nranks);
  if (is_small && canUsePackets(d, shape)) {
    return {bringsResultsHome(d.collective) ? Algorithm::one_shot : Algorithm::direct, SlotForm::packets,
            "small: the hand-over is what counts"};
  }
  return {Algorithm::direct, SlotForm::plain,
          is_small ? "packets cannot carry it" : "large: the bytes are what counts"};
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
  const std::uint64_t size = sizeOf(descriptor.type);
  const Choice choice = choose(descriptor, nranks, shape, override);
  const bool is_plain = choice.slots == SlotForm::plain;
  // A lane is worth its steps only if it has a grain of its own for every rank. There is one set of packet
  // links.
  const std::uint64_t grains =
      divideUp(descriptor.count * size, kLaneGrainBytes * static_cast<std::uint64_t>(nranks));
  return {{
              .algorithm = choice.algorithm,
              .slots = choice.slots,
              .descriptor = descriptor,
              .nranks = nranks,
              .lanes = static_cast<std::uint32_t>(
                  std::clamp<std::uint64_t>(grains, 1, is_plain ? shape.lanes : 1)),
              .slot_elements = (is_plain ? shape.slot_bytes : shape.packet_bytes) / size,
          },
          choice.reason};
}

Plan makePointToPointPlan(const Descriptor& descriptor, int nranks, const LinkShape& shape) {
  return {.algorithm = Algorithm::direct,
          .descriptor = descriptor,
          .nranks = nranks,
          .slot_elements = shape.slot_bytes / sizeOf(descriptor.type)};
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
