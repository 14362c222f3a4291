// The ring programs: reduce-scatter, all-gather, and all-reduce, which is the two fused.
//
// Ranks stand in a ring; each receives from its left neighbour and sends to its right. Which ranks are
// neighbours is an order that all ranks have alike, by lane; below it is that of their numbers.
// The data is cut into n blocks. Reduce-scatter on four ranks, what each sends in step k (A0 = rank 0's part
// of block A, A01 = A0 + A1, ...; block A belongs to rank 0, B to 1, C to 2, D to 3):
//
//            rank 0     rank 1     rank 2     rank 3
//   k = 0    D0 ─►      A1 ─►      B2 ─►      C3 ─►
//   k = 1    C30 ─►     D01 ─►     A12 ─►     B23 ─►
//   k = 2    B230 ─►    C301 ─►    D012 ─►    A123 ─►
//   end      A1230      B2301      C3012      D0123     each adds its own part last: the block is complete
//
// All-gather then passes every complete block around the ring, n - 1 steps more. A block is reduced in one
// order only and its bits are copied afterwards, so all ranks end with the same bits.
//
// Cost per rank, for S bytes: reduce-scatter and all-gather send (n-1)/n S in n - 1 steps; all-reduce sends
// 2(n-1)/n S in 2(n-1) steps, which is optimal in bytes (Patarasuk & Yuan 2009). User memory is read once per
// contribution and written once per result.
//
// Blocks larger than a slot go in several rounds. Those of a batch take each step one after the other, so
// that as many slots are under way on every link; rounds.h says why and how many.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "collectives/rounds.h"
#include "runtime/core/plan.h"

namespace tutti {

/// One rank's place in the ring of a lane.
struct Ring {
  std::int32_t nranks;
  std::int32_t place;  ///< of this rank, counted to the right
  const std::uint16_t* order;
  Inbound left;
  Outbound right;

  constexpr explicit Ring(const LaneWork& work)
      : Ring(work.nranks, work.ring == nullptr ? work.rank : work.ring[work.nranks + work.rank], work.ring) {}

  /// The ring of the ranks with number `local` on each host, hosts being `ranks_per_host` apart. Places in
  /// such a ring are numbers of hosts.
  static constexpr Ring across(std::int32_t hosts, std::int32_t host, std::int32_t ranks_per_host,
                               std::int32_t local) {
    Ring ring(hosts, host, nullptr);
    ring.left.index = static_cast<std::uint16_t>(ring.left.index * ranks_per_host + local);
    ring.right.index = static_cast<std::uint16_t>(ring.right.index * ranks_per_host + local);
    return ring;
  }

  /// The place `distance` steps to the left, and who stands there.
  constexpr std::int32_t leftBy(std::int32_t distance) const {
    return (place - distance % nranks + nranks) % nranks;
  }
  constexpr std::int32_t rankLeftBy(std::int32_t distance) const {
    return order == nullptr ? leftBy(distance) : order[leftBy(distance)];
  }

 private:
  constexpr Ring(std::int32_t places, std::int32_t own_place, const std::uint16_t* ranks)
      : nranks(places),
        place(own_place),
        order(ranks),
        left{static_cast<std::uint16_t>(rankLeftBy(1))},
        right{static_cast<std::uint16_t>(rankLeftBy(places - 1))} {}
};

/// Fills a slot from memory and sends it on.
template <Executor E>
TUTTI_STEP bool ringStart(E& exec, const Ring& ring, Operands dsts, Operands srcs, std::uint64_t n) {
  if (!exec.reserve(ring.right) || !exec.combine(dsts, srcs, n, Last::no)) return false;
  exec.post(ring.right, n);
  return true;
}

/// Receives a slot and sends the next, in one pass over the data.
template <Executor E>
TUTTI_STEP bool ringPass(E& exec, const Ring& ring, Operands dsts, Operands srcs, std::uint64_t n,
                         Last last = Last::no) {
  if (!exec.await(ring.left) || !exec.reserve(ring.right) || !exec.combine(dsts, srcs, n, last)) return false;
  exec.post(ring.right, n);
  exec.release(ring.left);
  return true;
}

/// Receives the last slot of a round into memory.
template <Executor E>
TUTTI_STEP bool ringEnd(E& exec, const Ring& ring, Operands dsts, Operands srcs, std::uint64_t n,
                        Last last = Last::no) {
  if (!exec.await(ring.left) || !exec.combine(dsts, srcs, n, last)) return false;
  exec.release(ring.left);
  return true;
}

/// Block r of the input (count elements each) is reduced over all ranks into the output of rank r.
template <Executor E>
TUTTI_PROGRAM bool ringReduceScatter(E& exec, const LaneWork& work) {
  const Ring ring(work);
  // What this rank handles in step k is the block of the rank k + 1 to its left; its own comes last.
  const auto mine = [&](std::int32_t k, const Round& round) {
    return input(static_cast<std::uint64_t>(ring.rankLeftBy(k + 1)) * work.count + round.begin).own();
  };
  return inBatches(work, slotRound(work), [&](const auto& batch) {
    const auto start = [&](const Round& round) {
      return ringStart(exec, ring, {slot(ring.right)}, {mine(0, round)}, round.length);
    };
    const auto end = [&](const Round& round) {
      return ringEnd(exec, ring, {output(round.begin)}, {slot(ring.left), mine(ring.nranks - 1, round)},
                     round.length, Last::yes);
    };
    if (!batch(start)) return false;
    for (std::int32_t k = 1; k < ring.nranks - 1; ++k) {
      const auto pass = [&](const Round& round) {
        return ringPass(exec, ring, {slot(ring.right)}, {slot(ring.left), mine(k, round)}, round.length);
      };
      if (!batch(pass)) return false;
    }
    return batch(end);
  });
}

/// The input of rank r (count elements) is copied to block r of every output.
template <Executor E>
TUTTI_PROGRAM bool ringAllGather(E& exec, const LaneWork& work) {
  const Ring ring(work);
  const auto block = [&](std::int32_t k, const Round& round) {
    return output(static_cast<std::uint64_t>(ring.rankLeftBy(k)) * work.count + round.begin);
  };
  return inBatches(work, slotRound(work), [&](const auto& batch) {
    const auto start = [&](const Round& round) {
      return ringStart(exec, ring, {block(0, round), slot(ring.right)}, {input(round.begin)}, round.length);
    };
    const auto end = [&](const Round& round) {
      return ringEnd(exec, ring, {block(ring.nranks - 1, round)}, {slot(ring.left)}, round.length);
    };
    if (!batch(start)) return false;
    for (std::int32_t k = 1; k < ring.nranks - 1; ++k) {
      const auto pass = [&](const Round& round) {
        return ringPass(exec, ring, {block(k, round), slot(ring.right)}, {slot(ring.left)}, round.length);
      };
      if (!batch(pass)) return false;
    }
    return batch(end);
  });
}

/// Both fused, for a batch of rounds (rounds.h): what `mine_at` says this rank has of an element is reduced
/// over all ranks into every output. A round is cut into a block per place; blocks at its end may be short or
/// empty, and are passed like all others.
template <Executor E, class Batch, class Mine>
TUTTI_STEP bool ringReduceBatch(E& exec, const Ring& ring, const Batch& batch, const Mine& mine_at) {
  const auto start = [&](std::int32_t k, const Round& round) {
    return round.begin + std::min(static_cast<std::uint64_t>(ring.leftBy(k)) * round.block, round.length);
  };
  const auto length = [&](std::int32_t k, const Round& round) {
    return std::min(round.block, round.begin + round.length - start(k, round));
  };
  const auto mine = [&](std::int32_t k, const Round& round) { return mine_at(start(k, round)); };

  // Reduce-scatter: in step k the block of the rank k + 1 to the left, in the last the own block, complete.
  const auto begin = [&](const Round& round) {
    return ringStart(exec, ring, {slot(ring.right)}, {mine(1, round)}, length(1, round));
  };
  if (!batch(begin)) return false;
  for (std::int32_t k = 2; k < ring.nranks; ++k) {
    const auto pass = [&](const Round& round) {
      return ringPass(exec, ring, {slot(ring.right)}, {slot(ring.left), mine(k, round)}, length(k, round));
    };
    if (!batch(pass)) return false;
  }
  const auto complete = [&](const Round& round) {
    return ringPass(exec, ring, {output(start(0, round)), slot(ring.right)},
                    {slot(ring.left), mine(0, round)}, length(0, round), Last::yes);
  };
  if (!batch(complete)) return false;
  // All-gather: the complete blocks pass by.
  for (std::int32_t k = 1; k < ring.nranks - 1; ++k) {
    const auto pass = [&](const Round& round) {
      return ringPass(exec, ring, {output(start(k, round)), slot(ring.right)}, {slot(ring.left)},
                      length(k, round));
    };
    if (!batch(pass)) return false;
  }
  return batch([&](const Round& round) {
    const std::int32_t rest = ring.nranks - 1;
    return ringEnd(exec, ring, {output(start(rest, round))}, {slot(ring.left)}, length(rest, round));
  });
}

/// The input is reduced over all ranks into every output, in rounds of n blocks of at most a slot each.
template <Executor E>
TUTTI_PROGRAM bool ringAllReduce(E& exec, const LaneWork& work) {
  const Ring ring(work);
  const auto roundAt = [&](std::uint64_t at) {
    // Blocks start at multiples of 16 elements, so that a user's aligned buffer stays aligned.
    constexpr std::uint64_t kBlockGrain = 16;
    const auto nranks = static_cast<std::uint64_t>(ring.nranks);
    const std::uint64_t left = work.end - at;
    const std::uint64_t full = work.slot_elements * nranks;
    if (left >= full) return Round{at, full, work.slot_elements};
    const std::uint64_t share = (left + nranks - 1) / nranks;
    const std::uint64_t block =
        std::min(work.slot_elements, (share + kBlockGrain - 1) / kBlockGrain * kBlockGrain);
    return Round{at, std::min(block * nranks, left), block};
  };
  return inBatches(work, roundAt, [&](const auto& batch) {
    return ringReduceBatch(exec, ring, batch, [](std::uint64_t i) { return input(i).own(); });
  });
}

}  // namespace tutti
