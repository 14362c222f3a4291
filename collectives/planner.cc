#include "collectives/planner.h"

#include <algorithm>
#include <bit>
#include <span>

namespace tutti {
namespace {

constexpr std::uint32_t kBestSlotBytes = 128 * 1024;
constexpr std::uint32_t kLeastSlotBytes = 1024;
constexpr std::uint64_t kInboundBytes = 4 << 20;  ///< of all links that a rank receives by
constexpr std::uint64_t kGpuInboundBytes = 64 << 20;
/// Less than this per lane and rank does not pay for another block of a kernel.
constexpr std::uint64_t kGpuLaneBytes = 16 << 10;

/// How much a rank sends to one peer at most, and so what decides between programs: the whole input, except
/// where every peer gets a block of its own.
std::uint64_t messageBytes(const Descriptor& d) { return d.count * sizeOf(d.type); }

/// The measured tables (collectives/README.md): with up to `nranks` ranks, messages of up to `packet_bytes`
/// go by packets, those of up to `one_shot_bytes` to everybody at once, and larger ones directly.
struct SizeRow {
  int nranks;
  std::uint64_t packet_bytes;
  std::uint64_t one_shot_bytes;
};
constexpr SizeRow kSizeTable[] = {
    {2, 512, 2048},
    {8, 64, 4096},
    {kMaxMeshRanks, 64, 2048},
};

/// On GPUs, where a hand-over takes some microseconds and packets carry half as much data per byte.
constexpr SizeRow kGpuSizeTable[] = {
    {2, 4096, 64 << 10},
    {8, 4096, 32 << 10},
    {kMaxMeshRanks, 2048, 4096},
};

/// Between hosts, where a step takes ten times as long as inside one: messages of up to `one_shot_bytes` go
/// to everybody at once, those of up to `direct_bytes` directly, and larger ones round the ring, which sends
/// everything through each network link once.
struct NetworkRow {
  std::uint64_t one_shot_bytes;
  std::uint64_t direct_bytes;
};
constexpr NetworkRow kTwoRanksApart{16 << 10, ~std::uint64_t{0}};
constexpr NetworkRow kManyApart{8 << 10, 64 << 10};

const SizeRow& sizesFor(int nranks, bool on_gpu) {
  const std::span<const SizeRow> table = on_gpu ? std::span(kGpuSizeTable) : std::span(kSizeTable);
  return *std::ranges::find_if(table, [nranks](const SizeRow& row) { return nranks <= row.nranks; });
}

/// Packets carry raw inputs: where every rank has a scalar of its own, headers have to tell it. They are
/// stores into memory of the peer.
bool canUsePackets(const Descriptor& d, const Layout& layout, const LinkShape& shape) {
  return layout.hosts == 1 && layout.nranks <= kMaxMeshRanks && d.op != RedOp::premul_sum &&
         shape.packet_bytes >= sizeOf(d.type);
}

bool canUseHosts(const Descriptor& d, const Layout& layout) {
  return d.collective == Collective::all_reduce && layout.hosts > 1 && layout.ranks_per_host > 0 &&
         layout.ranks_per_host <= kMaxMeshRanks;
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

/// Nothing to share, nothing to reduce: straight from each to each, whatever was picked and however many
/// ranks there are.
Choice choosePersonalized(const Descriptor& d, const Layout& layout, const LinkShape& shape,
                          PlanOverride::Form form) {
  const bool is_tiny =
      layout.nranks <= kMaxMeshRanks && messageBytes(d) <= sizesFor(layout.nranks, shape.on_gpu).packet_bytes;
  const bool wants_packets =
      form == PlanOverride::Form::packets || (form != PlanOverride::Form::plain && is_tiny);
  if (wants_packets && canUsePackets(d, layout, shape)) {
    return {Algorithm::direct, SlotForm::packets, "tiny: the hand-over is what counts"};
  }
  return {Algorithm::direct, SlotForm::plain, "each pair's data is its own"};
}

/// A lane is worth its steps only if it has a grain of its own for every rank.
std::uint32_t usefulLanes(const Descriptor& d, int nranks, const LinkShape& shape) {
  if (shape.lanes == 1) return 1;
  const std::uint64_t grain = shape.on_gpu ? kGpuLaneBytes : kLaneGrainBytes;
  const std::uint64_t grains = divideUp(d.count * sizeOf(d.type), grain * static_cast<std::uint64_t>(nranks));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(grains, 1, shape.lanes));
}

/// Sizes are powers of two, and this runs for every operation: a shift, not a division.
std::uint64_t elementsIn(std::uint32_t bytes, DataType type) {
  return bytes >> std::countr_zero(sizeOf(type));
}

Choice chooseInsideHost(const Descriptor& d, const Layout& layout, const LinkShape& shape) {
  const SizeRow& row = sizesFor(layout.nranks, shape.on_gpu);
  const std::uint64_t bytes = messageBytes(d);
  if (bytes <= row.packet_bytes && canUsePackets(d, layout, shape)) {
    return {bringsResultsHome(d.collective) ? Algorithm::one_shot : Algorithm::direct, SlotForm::packets,
            "tiny: the hand-over is what counts"};
  }
  if (bytes <= row.one_shot_bytes && bringsResultsHome(d.collective)) {
    return {Algorithm::one_shot, SlotForm::plain, "small: one step is quicker than two"};
  }
  return {Algorithm::direct, SlotForm::plain, "the bytes are what counts"};
}

Choice chooseBetweenHosts(const Descriptor& d, const Layout& layout) {
  if (canUseHosts(d, layout) && layout.ranks_per_host > 1) {
    return {Algorithm::hierarchical, SlotForm::plain, "several ranks on each of several hosts"};
  }
  const NetworkRow& row = layout.nranks == 2 ? kTwoRanksApart : kManyApart;
  const std::uint64_t bytes = messageBytes(d);
  if (bytes <= row.one_shot_bytes && bringsResultsHome(d.collective)) {
    return {Algorithm::one_shot, SlotForm::plain, "between hosts, small: one step is quicker than two"};
  }
  if (bytes <= row.direct_bytes) {
    return {Algorithm::direct, SlotForm::plain, "between hosts: two steps are quicker than a ring"};
  }
  return {Algorithm::ring, SlotForm::plain, "between hosts: each network link carries everything once"};
}

Choice chooseAutomatically(const Descriptor& d, const Layout& layout, const LinkShape& shape) {
  if (layout.nranks > kMaxMeshRanks) {
    return {Algorithm::ring, SlotForm::plain, "too many ranks for each to send to every other"};
  }
  return layout.hosts > 1 ? chooseBetweenHosts(d, layout) : chooseInsideHost(d, layout, shape);
}

/// What was picked by hand, as far as the collective and the layout have it.
Choice choose(const Descriptor& d, const Layout& layout, const LinkShape& shape,
              const PlanOverride& override) {
  using Pick = PlanOverride::Pick;
  using Form = PlanOverride::Form;
  if (layout.nranks == 1) return {Algorithm::single, SlotForm::plain, "one rank"};
  if (isPersonalized(d.collective)) return choosePersonalized(d, layout, shape, override.slots);
  Choice choice = chooseAutomatically(d, layout, shape);
  if (override == PlanOverride{}) return choice;
  const bool has_mesh = layout.nranks <= kMaxMeshRanks;
  if (override.algorithm == Pick::not_ring && choice.algorithm == Algorithm::ring && has_mesh) {
    choice.algorithm = Algorithm::direct;
  }
  if (override.slots == Form::plain) choice.slots = SlotForm::plain;
  if (override.slots == Form::packets && canUsePackets(d, layout, shape)) choice.slots = SlotForm::packets;
  if (override.algorithm == Pick::ring) {
    choice.algorithm = Algorithm::ring;
    choice.slots = SlotForm::plain;
  } else if (override.algorithm == Pick::hierarchical) {
    if (canUseHosts(d, layout)) choice = {Algorithm::hierarchical, SlotForm::plain, ""};
  } else if (override.algorithm == Pick::direct && has_mesh) {
    choice.algorithm = Algorithm::direct;
    if (bringsResultsHome(d.collective)) choice.slots = SlotForm::plain;
  } else if ((override.algorithm == Pick::one_shot && has_mesh) || choice.slots == SlotForm::packets) {
    choice.algorithm = bringsResultsHome(d.collective) ? Algorithm::one_shot : Algorithm::direct;
  }
  choice.reason = "picked by the environment";
  return choice;
}

/// Whether rounds overlap. Between hosts they hide the time that a slot is on its way. Inside one, what was
/// just written had better be read while it is in the caches; but in all-to-all, where nothing of a round is
/// needed for the next, a rank that runs ahead spares the others that have to wait for its core.
bool runsAhead(const Descriptor& descriptor, const Layout& layout, const LinkShape& shape, bool is_plain) {
  return layout.hosts > 1 || (descriptor.collective == Collective::all_to_all && is_plain && !shape.on_gpu);
}

}  // namespace

LinkShape fitShape(LinkShape shape, int host_ranks) {
  if (shape.lanes == 0) shape.lanes = shape.on_gpu ? kGpuLanes : 1;
  if (shape.slot_bytes != 0) return shape;
  const std::uint64_t slots =
      std::uint64_t{shape.slot_count} * shape.lanes * static_cast<std::uint64_t>(std::max(1, host_ranks - 1));
  const std::uint64_t most = shape.most_slot_bytes != 0 ? shape.most_slot_bytes : kBestSlotBytes;
  const std::uint64_t inbound = shape.on_gpu ? kGpuInboundBytes : kInboundBytes;
  const std::uint64_t share = inbound / slots / kLeastSlotBytes * kLeastSlotBytes;
  shape.slot_bytes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, kLeastSlotBytes, most));
  return shape;
}

PlannedOperation planOperation(const Descriptor& descriptor, const Layout& layout, const LinkShape& shape,
                               const PlanOverride& override) {
  const Choice choice = choose(descriptor, layout, shape, override);
  const std::int32_t nranks = layout.nranks;
  const bool is_plain = choice.slots == SlotForm::plain;
  return {
      {
          .algorithm = choice.algorithm,
          .slots = choice.slots,
          .descriptor = descriptor,
          .nranks = nranks,
          .ranks_per_host = layout.ranks_per_host,
          .lanes = is_plain ? usefulLanes(descriptor, nranks, shape) : 1,  // there is one set of packet links
          .depth = runsAhead(descriptor, layout, shape, is_plain) ? shape.slot_count - 1 : 1,
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

}  // namespace tutti
