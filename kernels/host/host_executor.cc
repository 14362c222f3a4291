#include "kernels/host/host_executor.h"

#include <fmt/format.h>

#include <array>
#include <cassert>

namespace tutti {

// Counters: the thread in the call is the only writer of its side, so it may read its own counter relaxed.
// The other side's counter is read with acquire and pairs with the release store of post or release.

HostExecutor::HostExecutor(const Plan& plan, const UserBuffers& buffers, std::span<const LinkView> inbound,
                           std::span<const LinkView> outbound, const WaitContext& wait, FaultCell& fault)
    : plan_(plan),
      buffers_(buffers),
      inbound_(inbound),
      outbound_(outbound),
      wait_(wait),
      fault_(fault),
      combine_(isReduction(plan.descriptor.collective)
                   ? combineFunction(plan.descriptor.type, plan.descriptor.op)
                   : nullptr),
      element_bytes_(sizeOf(plan.descriptor.type)) {}

bool HostExecutor::await(Inbound in) {
  const LinkView& link = inbound_[in.index];
  const std::uint64_t sequence = link.released->value.load(std::memory_order_relaxed);
  const auto holdsData = [&] { return link.posted->value.load(std::memory_order_acquire) > sequence; };
  if (!wait_.until(link.peer, holdsData)) return false;
  const SlotHeader& header = link.header(sequence);
  const bool fits = header.sequence == sequence && header.descriptor == plan_.descriptor &&
                    header.kind == SlotKind::inline_data && header.bytes <= link.slot_bytes;
  return fits || refuseSlot(link, header, sequence);
}

bool HostExecutor::reserve(Outbound out) {
  const LinkView& link = outbound_[out.index];
  const std::uint64_t posted = link.posted->value.load(std::memory_order_relaxed);
  const auto isFree = [&] {
    return posted - link.released->value.load(std::memory_order_acquire) < link.slot_count;
  };
  return wait_.until(link.peer, isFree);
}

void HostExecutor::post(Outbound out, std::uint64_t n) {
  const LinkView& link = outbound_[out.index];
  const std::uint64_t sequence = link.posted->value.load(std::memory_order_relaxed);
  assert(sequence - link.released->value.load(std::memory_order_relaxed) < link.slot_count);
  link.header(sequence) = {.sequence = sequence, .descriptor = plan_.descriptor, .bytes = n * element_bytes_};
  // Publishes the slot and its header; pairs with the acquire in await.
  link.posted->value.store(sequence + 1, std::memory_order_release);
  ++posted_.slots;
  posted_.payload_bytes += n * element_bytes_;
}

void HostExecutor::release(Inbound in) {
  const LinkView& link = inbound_[in.index];
  const std::uint64_t sequence = link.released->value.load(std::memory_order_relaxed);
  assert(sequence < link.posted->value.load(std::memory_order_relaxed));
  // Orders our reads of the slot before the sender's next writes; pairs with the acquire in reserve.
  link.released->value.store(sequence + 1, std::memory_order_release);
}

const std::byte* HostExecutor::source(const Operand& operand) const {
  switch (operand.where) {
    case Operand::Where::input:
      return buffers_.input + operand.offset * element_bytes_;
    case Operand::Where::inbound_slot: {
      const LinkView& link = inbound_[operand.link];
      return link.slot(link.released->value.load(std::memory_order_relaxed));
    }
    default:
      return destination(operand);
  }
}

std::byte* HostExecutor::destination(const Operand& operand) const {
  if (operand.where == Operand::Where::output) return buffers_.output + operand.offset * element_bytes_;
  assert(operand.where == Operand::Where::outbound_slot);
  const LinkView& link = outbound_[operand.link];
  return link.slot(link.posted->value.load(std::memory_order_relaxed));
}

bool HostExecutor::combine(Operands dsts, Operands srcs, std::uint64_t n, Last last) {
  std::array<std::byte*, kMaxCombineOperands> to;
  std::array<const std::byte*, kMaxCombineOperands> from;
  assert(dsts.size() >= 1 && dsts.size() <= to.size() && srcs.size() >= 1 && srcs.size() <= from.size());
  if (n == 0) return true;
  CombineArgs args{.dsts = to.data(),
                   .srcs = from.data(),
                   .dst_count = static_cast<std::uint32_t>(dsts.size()),
                   .src_count = static_cast<std::uint32_t>(srcs.size()),
                   .n = n,
                   .nranks = plan_.nranks,
                   .last = last == Last::yes};
  for (std::size_t i = 0; i < dsts.size(); ++i) to[i] = destination(dsts[i]);
  for (std::size_t i = 0; i < srcs.size(); ++i) {
    from[i] = source(srcs[i]);
    if (srcs[i].is_own) args.own |= std::uint64_t{1} << i;
  }
  if (isCopy(args, plan_.descriptor.op)) {
    copyCombine(args, element_bytes_);
  } else {
    combine_(args);
  }
  return true;
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

}  // namespace tutti
