#include "kernels/host/host_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "kernels/host/packets.h"
#include "runtime/core/extent.h"

namespace tutti {
namespace {

/// Operations on more memory than this write their results past the caches, if they work on user memory
/// directly: the results would not stay in the caches anyway.
constexpr std::uint64_t kStreamedBytes = 32 << 20;

/// Of the larger buffer of a rank.
std::uint64_t operationBytes(const Descriptor& d, int nranks) {
  const Extent extent = extentOf(d.collective, nranks);
  return d.count * sizeOf(d.type) * std::max(extent.send_blocks, extent.recv_blocks);
}

std::size_t index(int peer) { return static_cast<std::size_t>(peer); }

}  // namespace

// Counters: the thread in the call is the only writer of its side, so it may read its own counter relaxed.
// The other side's counter is read with acquire and pairs with the release store of post or release.

std::size_t hostScratchBytes(int nranks) {
  return nranks > kMaxMeshRanks ? 0 : static_cast<std::size_t>(nranks + 1) * packetSlotBytes();
}

HostExecutor::HostExecutor(const Plan& plan, const UserBuffers& buffers, const HostLinks& links,
                           const WaitContext& wait, FaultCell& fault)
    : plan_(plan),
      buffers_(buffers),
      links_(links),
      wait_(wait),
      fault_(fault),
      combine_(isReduction(plan.descriptor.collective)
                   ? combineFunction(plan.descriptor.type, plan.descriptor.op)
                   : nullptr),
      element_bytes_(sizeOf(plan.descriptor.type)),
      bytes_(operationBytes(plan.descriptor, plan.nranks)),
      scratch_part_(packetSlotBytes()),
      may_refer_(mayReferInPlace(plan.descriptor.collective) || buffers.input != buffers.output) {
  if (plan.descriptor.op == RedOp::avg) buffers_.scale = averageScale(plan.descriptor.type, plan.nranks);
}

// Receiving.

bool HostExecutor::await(Inbound in) {
  const LinkView& link = links_.inbound[in.index];
  const std::uint64_t sequence = link.released->value.load(std::memory_order_relaxed);
  if (usesPackets()) {
    const std::uint32_t flag = packetFlag(sequence, plan_.descriptor);
    return wait_.until(link.peer,
                       [&] { return readPackets(scratch(in.index), link.slot(sequence), flag, 1, 0) == 1; });
  }
  const auto holdsData = [&] { return link.posted->value.load(std::memory_order_acquire) > sequence; };
  if (!wait_.until(link.peer, holdsData)) return false;
  // A copy: what was checked must be what is used.
  const SlotHeader header = link.header(sequence);
  const bool fits =
      header.sequence == sequence && header.descriptor == plan_.descriptor && header.bytes <= link.slot_bytes;
  if (!fits) return refuseSlot(link, header, sequence);
  return resolve(link, header, sequence, state(in.index).held);
}

bool HostExecutor::refuseSlot(const LinkView& link, const SlotHeader& header, std::uint64_t sequence) {
  if (header.descriptor == plan_.descriptor) {
    fault_.trip(ncclInternalError,
                fmt::format("the link from rank {} holds slot {} of {} bytes where slot {} of at most {} was "
                            "expected: its memory was damaged",
                            link.peer, header.sequence, header.bytes, sequence, link.slot_bytes));
  } else {
    wait_.monitor.differs(link.peer, header.descriptor);
  }
  return false;
}

void HostExecutor::release(Inbound in) {
  const LinkView& link = links_.inbound[in.index];
  const std::uint64_t sequence = link.released->value.load(std::memory_order_relaxed);
  PeerState& from = state(in.index);
  const HeldSlot& held = from.held;
  has_failed_ = has_failed_ || !isStillLent(link);
  if (has_failed_) return;
  if (!usesPackets() && from.is_written) {
    from.is_written = false;
    countWritten(link, held.bytes);
    std::string error;
    if (held.to_address != 0 &&
        !links_.peers[index(link.peer)].write(held.to_address, held.to, held.bytes, &error)) {
      unreachable(link, error);
      return;
    }
  }
  // Also where nothing was left with the peer: what went past the caches into this rank's own output must be
  // ordered before whatever its user does next to hand it on.
  if (streamed_) streamingFence();
  streamed_ = false;
  if (!usesPackets() && from.borrowing == links_.executor) giveBack(link, from);
  // Orders our reads of the slot, and the result that we left, before the sender's next accesses; pairs with
  // the acquire in reserve and drain.
  link.released->value.store(sequence + 1, std::memory_order_release);
  if (link.is_network) wait_.progress->push(link.peer);
}

// Sending.

bool HostExecutor::reserve(Outbound out) {
  const LinkView& link = links_.outbound[out.index];
  // Packets need no acknowledgement: this rank has received slot k - 1 from the peer before it sends slot k
  // + 1.
  if (usesPackets()) return true;
  const std::uint64_t posted = link.posted->value.load(std::memory_order_relaxed);
  PeerState& to = state(out.index);
  if (to.sending != links_.executor) {
    to.sending = links_.executor;
    to.first = posted;
    to.returning = 0;  // what earlier executors sent has been seen to; its credits may still be out
  }
  const auto isFree = [&] {
    return posted - link.released->value.load(std::memory_order_acquire) < link.slot_count;
  };
  if (!wait_.until(link.peer, isFree)) return false;
  if (posted - to.first >= link.slot_count) bringHome(link, posted - link.slot_count);
  return true;
}

void HostExecutor::post(Outbound out, std::uint64_t n) {
  const LinkView& link = links_.outbound[out.index];
  const std::uint64_t sequence = link.posted->value.load(std::memory_order_relaxed);
  if (usesPackets()) {
    if (n == 0) writePacket(out, nullptr, 0);
    countPosted(link, n * element_bytes_);
    link.posted->value.store(sequence + 1, std::memory_order_relaxed);
    return;
  }
  countPosted(link, n * element_bytes_);
  publish(link, sequence, {.bytes = static_cast<std::uint32_t>(n * element_bytes_)});
}

void HostExecutor::publish(const LinkView& link, std::uint64_t sequence, const SlotHeader& header) {
  assert(sequence - link.released->value.load(std::memory_order_relaxed) < link.slot_count);
  SlotHeader& to = link.header(sequence);
  to = header;
  to.sequence = sequence;
  to.descriptor = plan_.descriptor;
  to.scale = buffers_.scale.bits;
  if (streamed_) streamingFence();
  streamed_ = false;
  // Publishes the slot and its header; pairs with the acquire in await.
  link.posted->value.store(sequence + 1, std::memory_order_release);
  if (link.is_network) wait_.progress->push(link.peer);
}

void HostExecutor::lend(Outbound out, std::uint64_t n, const Loan& loan) {
  const LinkView& link = links_.outbound[out.index];
  const std::uint64_t bytes = n * element_bytes_;
  const std::uint64_t sequence = link.posted->value.load(std::memory_order_relaxed);
  if (usesPackets()) {
    assert(!loan.returns);
    writePacket(out, source(loan.from), bytes);
    countPosted(link, bytes);
    link.posted->value.store(sequence + 1, std::memory_order_relaxed);
    return;
  }
  SlotHeader header{.kind = kindOf(link.peer, loan, bytes),
                    .returns = static_cast<std::uint16_t>(loan.returns ? 1 : 0),
                    .bytes = static_cast<std::uint32_t>(bytes)};
  switch (header.kind) {
    case SlotKind::inline_data:
      if (n != 0) std::memcpy(link.slot(sequence), source(loan.from), bytes);
      header.to = loan.to.offset;
      break;
    case SlotKind::region:
      header.from_region = regionOf(loan.from).number;
      header.from = regionOf(loan.from).offset + loan.from.offset * element_bytes_;
      if (!loan.returns) break;
      header.to_region = regionOf(loan.to).number;
      header.to = regionOf(loan.to).offset + loan.to.offset * element_bytes_;
      break;
    case SlotKind::address:
      header.from = reinterpret_cast<std::uintptr_t>(source(loan.from));
      if (loan.returns) header.to = reinterpret_cast<std::uintptr_t>(destination(loan.to));
      break;
  }
  // What the slot refers to, the receiver reads itself, and counts; the network brings it inline.
  countPosted(link, header.kind == SlotKind::inline_data || link.is_network ? bytes : 0);
  if (loan.returns || header.kind != SlotKind::inline_data) state(out.index).returning = sequence + 1;
  publish(link, sequence, header);
}

const RegionPlace& HostExecutor::regionOf(const Operand& operand) const {
  return operand.where == Operand::Where::input ? buffers_.input_region : buffers_.output_region;
}

SlotKind HostExecutor::kindOf(int peer, const Loan& loan, std::uint64_t bytes) const {
  if (!may_refer_) return SlotKind::inline_data;
  const MemoryAccess& access = links_.accepted[index(peer)];
  if (access.network && bytes >= links_.loans.least_network_bytes) return SlotKind::address;
  if (bytes == 0 || bytes_ < links_.loans.least_bytes) return SlotKind::inline_data;
  if (access.direct) return SlotKind::address;
  const bool lies_in_regions =
      regionOf(loan.from).number != 0 && (!loan.returns || regionOf(loan.to).number != 0);
  if (access.regions && lies_in_regions) return SlotKind::region;
  return access.copies && links_.loans.copies ? SlotKind::address : SlotKind::inline_data;
}

/// Copies the result that came back in a slot to where it belongs. Results of references are there already.
void HostExecutor::bringHome(const LinkView& link, std::uint64_t sequence) {
  const SlotHeader& header = link.header(sequence);
  if (header.kind != SlotKind::inline_data || header.returns == 0 || header.bytes == 0) return;
  std::memcpy(buffers_.output + header.to * element_bytes_, link.slot(sequence), header.bytes);
}

bool HostExecutor::drain(Outbound out) {
  const LinkView& link = links_.outbound[out.index];
  PeerState& to = state(out.index);
  if (usesPackets() || to.sending != links_.executor) return true;
  const std::uint64_t posted = link.posted->value.load(std::memory_order_relaxed);
  const auto isBack = [&] { return link.released->value.load(std::memory_order_acquire) >= to.returning; };
  if (!wait_.until(link.peer, isBack)) return false;
  // Slots that were reserved again have been dealt with then.
  const std::uint64_t sent = posted - to.first;
  for (std::uint64_t back = std::min<std::uint64_t>(sent, link.slot_count); back > 0; --back) {
    if (posted - back < to.returning) bringHome(link, posted - back);
  }
  to.sending = 0;
  return true;
}

// Data.

const std::byte* HostExecutor::source(const Operand& operand) const {
  switch (operand.where) {
    case Operand::Where::input:
      return buffers_.input + operand.offset * element_bytes_;
    case Operand::Where::inbound_slot:
      return usesPackets() ? scratch(operand.link) : state(operand.link).held.from;
    default:
      return destination(operand);
  }
}

std::byte* HostExecutor::destination(const Operand& operand) const {
  switch (operand.where) {
    case Operand::Where::output:
      return buffers_.output + operand.offset * element_bytes_;
    case Operand::Where::inbound_slot:
      return state(operand.link).held.to;
    default: {
      assert(operand.where == Operand::Where::outbound_slot);
      const LinkView& link = links_.outbound[operand.link];
      return link.slot(link.posted->value.load(std::memory_order_relaxed));
    }
  }
}

bool HostExecutor::combine(Operands dsts, Operands srcs, std::uint64_t n, Last last) {
  std::array<std::byte*, kMaxCombineOperands> to;
  std::array<const std::byte*, kMaxCombineOperands> from;
  std::array<Scale, kMaxCombineOperands> scales;
  assert(dsts.size() >= 1 && dsts.size() <= to.size() && srcs.size() >= 1 && srcs.size() <= from.size());
  if (n == 0) return true;
  is_checked_ = false;
  CombineArgs args{.dsts = to.data(),
                   .srcs = from.data(),
                   .dst_count = dsts.size(),
                   .src_count = srcs.size(),
                   .n = n,
                   .scales = scales.data(),
                   .nranks = plan_.nranks,
                   .last = last == Last::yes};
  bool is_in_place = false;  // works on a peer's memory
  for (std::uint32_t i = 0; i < srcs.size(); ++i) {
    const Operand operand = srcs[i];
    const bool is_slot = operand.where == Operand::Where::inbound_slot;
    if (is_slot && usesPackets() && !gatherPackets(operand, n * element_bytes_)) return false;
    from[i] = source(operand);
    is_in_place = is_in_place || (is_slot && !usesPackets() && state(operand.link).held.is_in_place);
    if (!operand.is_own) continue;
    args.own |= std::uint64_t{1} << i;
    scales[i] = is_slot && !usesPackets() ? state(operand.link).held.scale : buffers_.scale;
  }
  // In place the lines are in the caches anyway, being read.
  const bool is_streamed = is_in_place && bytes_ >= kStreamedBytes && buffers_.input != buffers_.output;
  bool fills_packets = false;
  for (std::uint32_t i = 0; i < dsts.size(); ++i) {
    const Operand operand = dsts[i];
    if (operand.where == Operand::Where::inbound_slot) state(operand.link).is_written = true;
    if (operand.where == Operand::Where::outbound_slot) {
      fills_packets = usesPackets();
    } else if (is_streamed) {
      args.stream |= std::uint64_t{1} << i;
    }
    to[i] = fills_packets ? scratch(static_cast<std::size_t>(plan_.nranks)) : destination(operand);
  }
  const bool is_copy = isCopy(args, plan_.descriptor.op);
  if (fills_packets) {
    // Every destination is a packet slot: one result is written to all.
    args.dst_count = 1;
    if (!is_copy) combine_(args);
    const std::byte* data = is_copy ? from[0] : to[0];
    for (std::uint32_t i = 0; i < dsts.size(); ++i) writePacket({dsts[i].link}, data, n * element_bytes_);
  } else if (is_copy) {
    copyCombine(args, element_bytes_);
  } else {
    combine_(args);
  }
  streamed_ = streamed_ || args.stream != 0;
  return true;
}

/// Polls until the whole message lies in the scratch memory of its peer.
bool HostExecutor::gatherPackets(const Operand& operand, std::uint64_t bytes) {
  const LinkView& link = links_.inbound[operand.link];
  const std::uint64_t sequence = link.released->value.load(std::memory_order_relaxed);
  const std::uint32_t flag = packetFlag(sequence, plan_.descriptor);
  const std::size_t lines = packetLines(bytes);
  std::size_t arrived = 0;
  return wait_.until(link.peer, [&] {
    arrived = readPackets(scratch(operand.link), link.slot(sequence), flag, bytes, arrived);
    return arrived == lines;
  });
}

void HostExecutor::writePacket(Outbound out, const std::byte* data, std::uint64_t bytes) {
  const LinkView& link = links_.outbound[out.index];
  const std::uint64_t sequence = link.posted->value.load(std::memory_order_relaxed);
  writePackets(link.slot(sequence), sequence, packetFlag(sequence, plan_.descriptor), data, bytes);
}

}  // namespace tutti
