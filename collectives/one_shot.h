// The one-shot programs: every rank sends its whole input to every other, and each computes the result
// itself.
//
//   rank 0 ◄──► rank 1      each rank sends S bytes to n - 1 peers, receives as many, and reduces n inputs in
//      ▲  ╲    ╱  ▲         the order of ranks: the same bits everywhere
//      ▼    ╲╱    ▼
//   rank 3 ◄──► rank 2      Cost: (n-1) S sent per rank, in one step: for messages whose time is the
//   hand-over
//
// Made for packet links, where a hand-over is one store; correct over all links.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "collectives/mesh.h"
#include "runtime/core/plan.h"

namespace tutti {

/// The input is reduced over all ranks into every output.
template <Executor E>
TUTTI_PROGRAM bool oneShotAllReduce(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    if (!mesh.forPeers([&](std::int32_t peer) { return exec.reserve(Mesh::to(peer)); }) ||
        !exec.combine(mesh.outboundSlots(), input(at), n, Last::no)) {
      return false;
    }
    mesh.forPeers([&](std::int32_t peer) {
      exec.post(Mesh::to(peer), n);
      return true;
    });
    if (!mesh.awaitAll(exec)) return false;
    if (!exec.combine(output(at), mesh.contributions(input(at)), n, Last::yes)) return false;
    mesh.releaseAll(exec);
  }
  return true;
}

/// The input is reduced over all ranks into the root's output. The root sends every peer an empty slot, so
/// that every pair exchanges both ways.
template <Executor E>
TUTTI_PROGRAM bool oneShotReduce(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    if (work.rank == work.root) {
      const auto greet = [&](std::int32_t peer) {
        if (!exec.reserve(Mesh::to(peer))) return false;
        exec.post(Mesh::to(peer), 0);
        return true;
      };
      if (!mesh.forPeers(greet) || !mesh.awaitAll(exec)) return false;
      if (!exec.combine(output(at), mesh.contributions(input(at)), n, Last::yes)) return false;
      mesh.releaseAll(exec);
    } else {
      const Outbound out = Mesh::to(work.root);
      if (!exec.reserve(out) || !exec.combine(slot(out), input(at), n, Last::no)) return false;
      exec.post(out, n);
      if (!exec.await(Mesh::from(work.root))) return false;
      exec.release(Mesh::from(work.root));
    }
  }
  return true;
}

}  // namespace tutti
