// The ring programs: reduce-scatter, all-gather, and all-reduce, which is the two fused.
//
// Ranks stand in a ring; each receives from its left neighbour (rank - 1) and sends to its right (rank + 1).
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
// Blocks larger than a slot go in several rounds; consecutive rounds overlap through the slots of the links.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "runtime/core/plan.h"

namespace tutti {

/// One rank's place in the ring of a lane.
struct Ring {
  std::int32_t nranks;
  std::int32_t rank;
  Inbound left;
  Outbound right;

  constexpr Ring(std::int32_t nranks_in_ring, std::int32_t own_rank)
      : nranks(nranks_in_ring),
        rank(own_rank),
        left{static_cast<std::uint16_t>(leftBy(1))},
        right{static_cast<std::uint16_t>(leftBy(nranks_in_ring - 1))} {}

  /// The ring of the ranks with number `local` on each host, hosts being `ranks_per_host` apart. Ranks of
  /// such a ring are numbers of hosts.
  static constexpr Ring across(std::int32_t hosts, std::int32_t host, std::int32_t ranks_per_host,
                               std::int32_t local) {
    Ring ring(hosts, host);
    ring.left.index = static_cast<std::uint16_t>(ring.left.index * ranks_per_host + local);
    ring.right.index = static_cast<std::uint16_t>(ring.right.index * ranks_per_host + local);
    return ring;
  }

  /// The rank `distance` steps to the left.
  constexpr std::int32_t leftBy(std::int32_t distance) const {
    return (rank - distance % nranks + nranks) % nranks;
  }
};

/// Fills a slot from memory and sends it on.
template <Executor E>
bool ringStart(E& exec, const Ring& ring, Operands dsts, Operands srcs, std::uint64_t n) {
  if (!exec.reserve(ring.right) || !exec.combine(dsts, srcs, n, Last::no)) return false;
  exec.post(ring.right, n);
  return true;
}

/// Receives a slot and sends the next, in one pass over the data.
template <Executor E>
bool ringPass(E& exec, const Ring& ring, Operands dsts, Operands srcs, std::uint64_t n,
              Last last = Last::no) {
  if (!exec.await(ring.left) || !exec.reserve(ring.right) || !exec.combine(dsts, srcs, n, last)) return false;
  exec.post(ring.right, n);
  exec.release(ring.left);
  return true;
}

/// Receives the last slot of a round into memory.
template <Executor E>
bool ringEnd(E& exec, const Ring& ring, Operands dsts, Operands srcs, std::uint64_t n, Last last = Last::no) {
  if (!exec.await(ring.left) || !exec.combine(dsts, srcs, n, last)) return false;
  exec.release(ring.left);
  return true;
}

/// Block r of the input (count elements each) is reduced over all ranks into the output of rank r.
template <Executor E>
bool ringReduceScatter(E& exec, const LaneWork& work) {
  const Ring ring(work.nranks, work.rank);
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    // What this rank handles in step k is the block of the rank k + 1 to its left; its own comes last.
    const auto mine = [&](std::int32_t k) {
      return input(static_cast<std::uint64_t>(ring.leftBy(k + 1)) * work.count + at).own();
    };
    if (!ringStart(exec, ring, {slot(ring.right)}, {mine(0)}, n)) return false;
    for (std::int32_t k = 1; k < ring.nranks - 1; ++k) {
      if (!ringPass(exec, ring, {slot(ring.right)}, {slot(ring.left), mine(k)}, n)) return false;
    }
    if (!ringEnd(exec, ring, {output(at)}, {slot(ring.left), mine(ring.nranks - 1)}, n, Last::yes))
      return false;
  }
  return true;
}

/// The input of rank r (count elements) is copied to block r of every output.
template <Executor E>
bool ringAllGather(E& exec, const LaneWork& work) {
  const Ring ring(work.nranks, work.rank);
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    const auto block = [&](std::int32_t k) {
      return output(static_cast<std::uint64_t>(ring.leftBy(k)) * work.count + at);
    };
    if (!ringStart(exec, ring, {block(0), slot(ring.right)}, {input(at)}, n)) return false;
    for (std::int32_t k = 1; k < ring.nranks - 1; ++k) {
      if (!ringPass(exec, ring, {block(k), slot(ring.right)}, {slot(ring.left)}, n)) return false;
    }
    if (!ringEnd(exec, ring, {block(ring.nranks - 1)}, {slot(ring.left)}, n)) return false;
  }
  return true;
}

/// Elements of a round of all-reduce, cut into one block per rank; blocks at its end may be short or empty,
/// and are passed like all others.
struct RingRound {
  std::uint64_t begin;
  std::uint64_t length;
  std::uint64_t block;
};

/// Both fused, for one round: what `mine` says this rank has of an element is reduced over all ranks into
/// every output.
template <Executor E, class Mine>
bool ringReduceBlock(E& exec, const Ring& ring, const RingRound& round, const Mine& mine_at) {
  const auto start = [&](std::int32_t k) {
    return round.begin + std::min(static_cast<std::uint64_t>(ring.leftBy(k)) * round.block, round.length);
  };
  const auto length = [&](std::int32_t k) {
    return std::min(round.block, round.begin + round.length - start(k));
  };
  const auto mine = [&](std::int32_t k) { return mine_at(start(k)); };

  // Reduce-scatter: in step k the block of the rank k + 1 to the left, in the last the own block, complete.
  if (!ringStart(exec, ring, {slot(ring.right)}, {mine(1)}, length(1))) return false;
  for (std::int32_t k = 2; k < ring.nranks; ++k) {
    if (!ringPass(exec, ring, {slot(ring.right)}, {slot(ring.left), mine(k)}, length(k))) return false;
  }
  if (!ringPass(exec, ring, {output(start(0)), slot(ring.right)}, {slot(ring.left), mine(0)}, length(0),
                Last::yes)) {
    return false;
  }
  // All-gather: the complete blocks pass by.
  for (std::int32_t k = 1; k < ring.nranks - 1; ++k) {
    if (!ringPass(exec, ring, {output(start(k)), slot(ring.right)}, {slot(ring.left)}, length(k)))
      return false;
  }
  const std::int32_t rest = ring.nranks - 1;
  return ringEnd(exec, ring, {output(start(rest))}, {slot(ring.left)}, length(rest));
}

/// The input is reduced over all ranks into every output, in rounds of n blocks of at most a slot each.
template <Executor E>
bool ringAllReduce(E& exec, const LaneWork& work) {
  const Ring ring(work.nranks, work.rank);
  const auto nranks = static_cast<std::uint64_t>(ring.nranks);
  // Blocks start at multiples of 16 elements, so that a user's aligned buffer stays aligned.
  constexpr std::uint64_t kBlockGrain = 16;
  for (std::uint64_t at = work.begin, round = 0; at < work.end; at += round) {
    const std::uint64_t share = (work.end - at + nranks - 1) / nranks;
    const std::uint64_t block =
        std::min(work.slot_elements, (share + kBlockGrain - 1) / kBlockGrain * kBlockGrain);
    round = std::min(block * nranks, work.end - at);
    if (!ringReduceBlock(exec, ring, {at, round, block}, [](std::uint64_t i) { return input(i).own(); }))
      return false;
  }
  return true;
}

}  // namespace tutti
