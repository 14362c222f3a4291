#include "bench/rank.h"

#include <algorithm>

#include "bench/sizes.h"

namespace tutti::perf {
namespace {

std::size_t shiftBytes(const Options& options) {
  std::size_t largest = 0;
  for (const ncclDataType_t type : options.types) largest = std::max(largest, elementBytes(type));
  return static_cast<std::size_t>(options.unaligned) * largest;
}

}  // namespace

Rank::Rank(const Options& options, const Collective& collective, Call call, const device::Seat& seat,
           int nranks)
    : collective_(collective),
      call_(call),
      seat_(seat),
      rank_(seat.rank()),
      nranks_(nranks),
      buffers_(seat, sizesOf(options.sizes).back(), shiftBytes(options), options.registered) {}

void Rank::begin(const Case& item) {
  case_ = &item;
  layout_ = collective_.layout(item.asked_bytes, item.element_bytes, nranks_, rank_);
  operation_.emplace(item.op.value_or(ncclSum), item.type, seat_.comm(), rank_);
}

Operands Rank::operands(bool in_place, std::size_t shift_bytes) const {
  if (!in_place) return {.send = buffers_.send() + shift_bytes, .recv = buffers_.recv() + shift_bytes};
  std::byte* both = buffers_.recv() + shift_bytes;
  return {.send = both + layout_.in_place_send * case_->element_bytes,
          .recv = both + layout_.in_place_recv * case_->element_bytes};
}

void Rank::invoke(const Operands& operands) const {
  check(call_({.send = operands.send,
               .recv = operands.recv,
               .count = layout_.param,
               .type = case_->type,
               .op = operation_->get(),
               .root = case_->root,
               .comm = seat_.comm(),
               .stream = seat_.stream(),
               .layout = layout_}));
}

}  // namespace tutti::perf
