// All-to-all, gather and scatter: each pair's data is its own, so it goes straight from the one to the other.
//
// Block p of rank r is rp. On three ranks, root 1:
//
//            all-to-all                     gather                scatter
//            input        output            input     output      input         output
//   rank 0   00 01 02  ►  00 10 20          00                                  10
//   rank 1   10 11 12  ►  01 11 21          10     ►  00 10 20    10 11 12   ►  11
//   rank 2   20 21 22  ►  02 12 22          20                                  12
//
// Cost, for blocks of S bytes: n - 1 blocks leave and arrive at every rank (all-to-all) or at the root
// (gather, scatter), in 1 step. Nothing is sent twice, which no other program could better.
//
// These programs need links between all pairs that exchange, however many ranks there are.
#pragma once

#include <cstdint>

#include "collectives/executor.h"
#include "collectives/mesh.h"
#include "collectives/rounds.h"
#include "runtime/core/plan.h"

namespace tutti {

/// Element `at` of block r.
constexpr std::uint64_t inBlock(const LaneWork& work, std::int32_t r, std::uint64_t at) {
  return static_cast<std::uint64_t>(r) * work.count + at;
}

/// Lends n elements to the peer, in a slot.
template <Executor E>
TUTTI_STEP bool lendTo(E& exec, std::int32_t peer, Operand data, std::uint64_t n) {
  if (!exec.reserve(Mesh::to(peer))) return false;
  exec.lend(Mesh::to(peer), n, Loan(data));
  return true;
}

/// An empty slot, where only one of a pair has data for the other: every pair then exchanges both ways, as
/// packet links need it, and ranks that disagree on the root hear of each other.
template <Executor E>
TUTTI_STEP bool sendNothing(E& exec, std::int32_t peer) {
  if (!exec.reserve(Mesh::to(peer))) return false;
  exec.post(Mesh::to(peer), 0);
  return true;
}

/// Copies n elements of the peer's next slot.
template <Executor E>
TUTTI_STEP bool receiveFrom(E& exec, std::int32_t peer, Operand to, std::uint64_t n) {
  const Inbound in = Mesh::from(peer);
  if (!exec.await(in) || !exec.combine(to, slot(in), n, Last::no)) return false;
  exec.release(in);
  return true;
}

template <Executor E>
TUTTI_STEP bool receiveNothing(E& exec, std::int32_t peer) {
  if (!exec.await(Mesh::from(peer))) return false;
  exec.release(Mesh::from(peer));
  return true;
}

/// Block p of the input goes to rank p, block p of the output comes from there. In place, a round takes its
/// elements of every block out of the buffer before it brings others in (see mayReferInPlace).
template <Executor E>
TUTTI_PROGRAM bool allToAll(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const auto begin = [&](std::uint64_t at, std::uint64_t n) {
    const std::uint64_t mine = inBlock(work, work.rank, at);
    return exec.combine(output(mine), input(mine), n, Last::no) && mesh.forPeers([&](std::int32_t peer) {
      return lendTo(exec, peer, input(inBlock(work, peer, at)), n);
    });
  };
  const auto finish = [&](std::uint64_t at, std::uint64_t n) {
    return mesh.forPeers(
        [&](std::int32_t peer) { return receiveFrom(exec, peer, output(inBlock(work, peer, at)), n); });
  };
  return overlapSlots(work, begin, finish) && mesh.drainAll(exec);
}

/// The input of rank r is copied to block r of the root's output.
template <Executor E>
TUTTI_PROGRAM bool gather(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const bool is_root = work.rank == work.root;
  const auto begin = [&](std::uint64_t at, std::uint64_t n) {
    if (!is_root) return lendTo(exec, work.root, input(at), n);
    return exec.combine(output(inBlock(work, work.rank, at)), input(at), n, Last::no) &&
           mesh.forPeers([&](std::int32_t peer) { return sendNothing(exec, peer); });
  };
  const auto finish = [&](std::uint64_t at, std::uint64_t n) {
    if (!is_root) return receiveNothing(exec, work.root);
    return mesh.forPeers(
        [&](std::int32_t peer) { return receiveFrom(exec, peer, output(inBlock(work, peer, at)), n); });
  };
  return overlapSlots(work, begin, finish) && (is_root || exec.drain(Mesh::to(work.root)));
}

/// Block r of the root's input is copied to the output of rank r.
template <Executor E>
TUTTI_PROGRAM bool scatter(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const bool is_root = work.rank == work.root;
  const auto begin = [&](std::uint64_t at, std::uint64_t n) {
    if (!is_root) return sendNothing(exec, work.root);
    return exec.combine(output(at), input(inBlock(work, work.rank, at)), n, Last::no) &&
           mesh.forPeers(
               [&](std::int32_t peer) { return lendTo(exec, peer, input(inBlock(work, peer, at)), n); });
  };
  const auto finish = [&](std::uint64_t at, std::uint64_t n) {
    if (!is_root) return receiveFrom(exec, work.root, output(at), n);
    return mesh.forPeers([&](std::int32_t peer) { return receiveNothing(exec, peer); });
  };
  return overlapSlots(work, begin, finish) && (!is_root || mesh.drainAll(exec));
}

}  // namespace tutti
