// Chooses the program of a collective. A new program is added here, in planner.cc, and in the proofs of
// tests/.
#pragma once

#include "collectives/chain.h"
#include "collectives/executor.h"
#include "collectives/ring.h"
#include "runtime/core/plan.h"

namespace tutti {

/// A communicator of one rank: the input is the result. Nothing is sent.
template <Executor E>
bool single(E& exec, const LaneWork& work, bool reduces) {
  const std::uint64_t n = work.end - work.begin;
  if (n == 0) return true;
  const Operand source = reduces ? input(work.begin).own() : input(work.begin);
  return exec.combine({output(work.begin)}, {source}, n, reduces ? Last::yes : Last::no);
}

/// Runs one rank's share of one lane. False once the operation has failed.
template <Executor E>
bool runProgram(E& exec, const Plan& plan, const LaneWork& work) {
  switch (plan.program) {
    case Program::single:
      return single(exec, work, isReduction(plan.descriptor.collective));
    case Program::ring_all_reduce:
      return ringAllReduce(exec, work);
    case Program::ring_reduce_scatter:
      return ringReduceScatter(exec, work);
    case Program::ring_all_gather:
      return ringAllGather(exec, work);
    case Program::chain_broadcast:
      return chainBroadcast(exec, work);
    case Program::chain_reduce:
      return chainReduce(exec, work);
  }
  return false;
}

}  // namespace tutti
