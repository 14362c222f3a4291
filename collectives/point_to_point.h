// Send and receive: two programs, one for each end of a link. The peer is the work's root.
//
//   sender   input ──lend──► slot ──► output   receiver
//
// Cost: S bytes, read and written once where the receiver reaches the sender's memory, else twice.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "collectives/mesh.h"
#include "runtime/core/plan.h"

namespace tutti {

/// `count` elements of the input go to the peer. Returns when they may be overwritten.
template <Executor E>
TUTTI_PROGRAM bool sendProgram(E& exec, const LaneWork& work) {
  const Outbound out = Mesh::to(work.root);
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    if (!exec.reserve(out)) return false;
    exec.lend(out, std::min(work.slot_elements, work.end - at), Loan(input(at)));
  }
  return exec.drain(out);
}

/// `count` elements of the peer fill the output.
template <Executor E>
TUTTI_PROGRAM bool receiveProgram(E& exec, const LaneWork& work) {
  const Inbound in = Mesh::from(work.root);
  for (std::uint64_t at = work.begin; at < work.end; at += work.slot_elements) {
    const std::uint64_t n = std::min(work.slot_elements, work.end - at);
    if (!exec.await(in) || !exec.combine(output(at), slot(in), n, Last::no)) return false;
    exec.release(in);
  }
  return true;
}

}  // namespace tutti
