// Chains: broadcast and reduce along the ring's links.
//
// Broadcast: the root's data runs from the root to the rank on its left. Reduce is the same chain to the end:
// partial results run from the rank on the root's right to the root.
//
//   broadcast, root 1 of 4:     1 ──► 2 ──► 3 ──► 0          (the link 0 ──► 1 stays idle)
//   reduce, root 1 of 4:        2 ──► 3 ──► 0 ──► 1          (the link 1 ──► 2 stays idle)
//
// The data goes slot by slot, so all links are busy at once after n - 2 slots. Cost: every rank but the last
// sends S bytes once; (S / slot + n - 2) steps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/ring.h"

namespace tutti {

/// The root's input is copied to every output.
template <Executor E>
TUTTI_PROGRAM bool chainBroadcast(E& exec, const LaneWork& work) {
  const Ring ring(work);
  const bool is_root = work.rank == work.root;
  const bool is_last = ring.rankLeftBy(work.nranks - 1) == work.root;  // its right neighbour is the root
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    bool alive = false;
    if (is_root) {
      alive = ringStart(exec, ring, {output(at), slot(ring.right)}, {input(at)}, n);
    } else if (is_last) {
      alive = ringEnd(exec, ring, {output(at)}, {slot(ring.left)}, n);
    } else {
      alive = ringPass(exec, ring, {output(at), slot(ring.right)}, {slot(ring.left)}, n);
    }
    if (!alive) return false;
  }
  return true;
}

/// The inputs of all ranks are reduced into the root's output; nobody else's is touched.
template <Executor E>
TUTTI_PROGRAM bool chainReduce(E& exec, const LaneWork& work) {
  const Ring ring(work);
  const bool is_root = work.rank == work.root;
  const bool is_first = ring.rankLeftBy(1) == work.root;  // its left neighbour is the root
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    const Operand mine = input(at).own();
    bool alive = false;
    if (is_first) {
      alive = ringStart(exec, ring, {slot(ring.right)}, {mine}, n);
    } else if (is_root) {
      alive = ringEnd(exec, ring, {output(at)}, {slot(ring.left), mine}, n, Last::yes);
    } else {
      alive = ringPass(exec, ring, {slot(ring.right)}, {slot(ring.left), mine}, n);
    }
    if (!alive) return false;
  }
  return true;
}

}  // namespace tutti
