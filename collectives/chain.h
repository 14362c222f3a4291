// Chain broadcast: the root's data runs along the ring's links, from the root to the rank on its left.
//
//   root 1 of 4:     1 ──► 2 ──► 3 ──► 0          (the link 0 ──► 1 stays idle)
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
bool chainBroadcast(E& exec, const LaneWork& work) {
  const Ring ring{work.nranks, work.rank};
  const bool is_root = work.rank == work.root;
  const bool is_last = ring.leftBy(work.nranks - 1) == work.root;  // its right neighbour is the root
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

}  // namespace tutti
