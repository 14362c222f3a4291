// Rounds under way at once: what keeps links busy over which a slot takes long.
//
// A program cuts its work into rounds of at most a slot per link. Within a host it finishes each before it
// begins the next: the data is still in the caches. Between hosts that would leave a link idle from the
// moment its slot is sent until the peer's answer comes; so a program begins up to `depth` rounds before it
// finishes the first of them, and every rank does so in the same order.
//
// depth < slot_count, or programs wait for each other in a circle: a rank that waits for a slot of round r +
// depth waits until its peer has finished round r + depth - slot_count, which is one that this rank has
// finished too.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "runtime/core/plan.h"

namespace tutti {

/// Calls begin(at) and finish(at) for each round, which starts at element `at`; the one behind it starts at
/// next(at). False as soon as one of them is.
template <class Next, class Begin, class Finish>
TUTTI_STEP bool overlapRounds(const LaneWork& work, const Next& next, const Begin& begin,
                              const Finish& finish) {
  std::uint64_t begun = work.begin;
  std::uint32_t under_way = 0;
  for (std::uint64_t at = work.begin; at < work.end; at = next(at)) {
    for (; begun < work.end && under_way < work.depth; ++under_way) {
      if (!begin(begun)) return false;
      begun = next(begun);
    }
    if (!finish(at)) return false;
    --under_way;
  }
  return true;
}

/// The same in rounds of one slot.
template <class Begin, class Finish>
TUTTI_STEP bool overlapSlots(const LaneWork& work, const Begin& begin, const Finish& finish) {
  const auto length = [&work](std::uint64_t at) { return std::min(work.slot_elements, work.end - at); };
  return overlapRounds(
      work, [&](std::uint64_t at) { return at + length(at); },
      [&](std::uint64_t at) { return begin(at, length(at)); },
      [&](std::uint64_t at) { return finish(at, length(at)); });
}

/// One round: elements `begin` to `begin + length`, in blocks of `block`.
struct Round {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t block = 0;
};

/// Calls run(batch) for all rounds, `depth` at a time; roundAt(at) is the round that starts there. A batch is
/// a function: batch(visit) calls visit(round) for each of its rounds, and is false as soon as that is. So a
/// program takes them through each of its steps, one after the other.
template <class RoundAt, class Run>
TUTTI_STEP bool inBatches(const LaneWork& work, const RoundAt& roundAt, const Run& run) {
  std::uint64_t end = work.begin;
  for (std::uint64_t begin = end; begin < work.end; begin = end) {
    for (std::uint32_t i = 0; i < work.depth && end < work.end; ++i) end += roundAt(end).length;
    const auto batch = [&](const auto& visit) {
      for (std::uint64_t at = begin; at < end;) {
        const Round round = roundAt(at);
        if (!visit(round)) return false;
        at += round.length;
      }
      return true;
    };
    if (!run(batch)) return false;
  }
  return true;
}

/// Rounds of one slot, for inBatches.
constexpr auto slotRound(const LaneWork& work) {
  return [&work](std::uint64_t at) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    return Round{at, n, n};
  };
}

}  // namespace tutti
