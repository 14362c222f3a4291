// Chooses the program of a plan. A new program is added here, in planner.cc, and in the proofs of tests/.
#pragma once

#include "collectives/chain.h"
#include "collectives/direct.h"
#include "collectives/executor.h"
#include "collectives/hierarchical.h"
#include "collectives/one_shot.h"
#include "collectives/personalized.h"
#include "collectives/ring.h"
#include "runtime/core/plan.h"

namespace tutti {

/// A communicator of one rank: the input is the result. Nothing is sent.
template <Executor E>
TUTTI_PROGRAM bool single(E& exec, const LaneWork& work, bool reduces) {
  const std::uint64_t n = work.end - work.begin;
  if (n == 0) return true;
  const Operand source = reduces ? input(work.begin).own() : input(work.begin);
  return exec.combine(output(work.begin), source, n, reduces ? Last::yes : Last::no);
}

template <Executor E>
TUTTI_STEP bool runRing(E& exec, Collective collective, const LaneWork& work) {
  switch (collective) {
    case Collective::all_reduce:
      return ringAllReduce(exec, work);
    case Collective::reduce_scatter:
      return ringReduceScatter(exec, work);
    case Collective::all_gather:
      return ringAllGather(exec, work);
    case Collective::broadcast:
      return chainBroadcast(exec, work);
    case Collective::reduce:
      return chainReduce(exec, work);
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      break;  // each pair's data is its own: a ring would only make it travel further
  }
  return false;
}

template <Executor E>
TUTTI_STEP bool runDirect(E& exec, Collective collective, const LaneWork& work) {
  switch (collective) {
    case Collective::all_reduce:
      return directAllReduce(exec, work);
    case Collective::reduce_scatter:
      return directReduceScatter(exec, work);
    case Collective::all_gather:
      return directAllGather(exec, work);
    case Collective::broadcast:
      return directBroadcast(exec, work);
    case Collective::reduce:
      return directReduce(exec, work);
    case Collective::all_to_all:
      return allToAll(exec, work);
    case Collective::gather:
      return gather(exec, work);
    case Collective::scatter:
      return scatter(exec, work);
  }
  return false;
}

/// Runs one rank's share of one lane. False once the operation has failed.
template <Executor E>
TUTTI_STEP bool runProgram(E& exec, const Plan& plan, const LaneWork& work) {
  const Collective collective = plan.descriptor.collective;
  switch (plan.algorithm) {
    case Algorithm::single:
      return single(exec, work, isReduction(collective));
    case Algorithm::ring:
      return runRing(exec, collective, work);
    case Algorithm::direct:
      return runDirect(exec, collective, work);
    case Algorithm::one_shot:
      return collective == Collective::reduce ? oneShotReduce(exec, work) : oneShotAllReduce(exec, work);
    case Algorithm::hierarchical:
      return hierarchicalAllReduce(exec, work);
  }
  return false;
}

}  // namespace tutti
