// The direct programs: every rank lends its memory, and works on that of the others in place.
//
// All-reduce on three ranks. The data is cut into one part per rank (A, B, C); x1 is rank 1's part x:
//
//            rank 0                  rank 1                  rank 2
//   lends    B0 to 1, C0 to 2        A1 to 0, C1 to 2        A2 to 0, B2 to 1
//   sums     A = A0 + A1 + A2        B = B0 + B1 + B2        C = C0 + C1 + C2
//   writes   A to all three          B to all three          C to all three
//   drains   until B and C are here  until A and C are here  until A and B are here
//
// Each part is reduced once, in the order of ranks and with one rounding, and its bits are copied: all ranks
// end with the same bits. Two synchronizations: a loan must have arrived, a result must have come home.
//
// Cost per rank, for S bytes: reads S, writes S; where nothing can be lent by reference, 2(n-1)/n S go
// through slots, as many as in a ring, in 2 steps instead of 2(n-1).
//
// Work goes in rounds of at most a slot per link; rounds.h says how many are under way at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "collectives/mesh.h"
#include "collectives/rounds.h"
#include "runtime/core/plan.h"

namespace tutti {

/// One round of all-reduce or reduce: a block of at most a slot for every rank. Blocks at the end of the data
/// may be short or empty.
class DirectRound {
 public:
  constexpr DirectRound(const LaneWork& work, std::uint64_t at) : at_(at) {
    // Blocks start at multiples of 64 elements, so that two ranks do not write to one cache line.
    constexpr std::uint64_t kGrain = 64;
    const auto nranks = static_cast<std::uint64_t>(work.nranks);
    const std::uint64_t share = (work.end - at + nranks - 1) / nranks;
    block_ = std::min(work.slot_elements, (share + kGrain - 1) / kGrain * kGrain);
    length_ = std::min(block_ * nranks, work.end - at);
  }

  constexpr std::uint64_t start(std::int32_t rank) const {
    return at_ + std::min(static_cast<std::uint64_t>(rank) * block_, length_);
  }
  constexpr std::uint64_t length(std::int32_t rank) const {
    return std::min(block_, at_ + length_ - start(rank));
  }
  constexpr std::uint64_t end() const { return at_ + length_; }

 private:
  std::uint64_t at_;
  std::uint64_t block_;
  std::uint64_t length_;
};

/// Where the round behind the one at `at` starts.
constexpr auto nextDirectRound(const LaneWork& work) {
  return [&work](std::uint64_t at) { return DirectRound(work, at).end(); };
}

/// The input is reduced over all ranks into every output.
template <Executor E>
TUTTI_PROGRAM bool directAllReduce(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const auto begin = [&](std::uint64_t at) {
    const DirectRound round(work, at);
    return mesh.forPeers([&](std::int32_t peer) {
      if (!exec.reserve(Mesh::to(peer))) return false;
      exec.lend(Mesh::to(peer), round.length(peer), {input(round.start(peer)), output(round.start(peer))});
      return true;
    });
  };
  const auto finish = [&](std::uint64_t at) {
    const DirectRound round(work, at);
    if (!mesh.awaitAll(exec)) return false;
    const std::uint64_t mine = round.start(work.rank);
    if (!exec.combine(mesh.results(output(mine)), mesh.contributions(input(mine)), round.length(work.rank),
                      Last::yes)) {
      return false;
    }
    mesh.releaseAll(exec);
    return true;
  };
  return overlapRounds(work, nextDirectRound(work), begin, finish) && mesh.drainAll(exec);
}

/// The input is reduced over all ranks into the root's output: as all-reduce, but only the root takes
/// results.
template <Executor E>
TUTTI_PROGRAM bool directReduce(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const bool is_root = work.rank == work.root;
  const auto begin = [&](std::uint64_t at) {
    const DirectRound round(work, at);
    return mesh.forPeers([&](std::int32_t peer) {
      if (!exec.reserve(Mesh::to(peer))) return false;
      const Operand part = input(round.start(peer));
      exec.lend(Mesh::to(peer), round.length(peer),
                is_root ? Loan(part, output(round.start(peer))) : Loan(part));
      return true;
    });
  };
  const auto finish = [&](std::uint64_t at) {
    const DirectRound round(work, at);
    if (!mesh.awaitAll(exec)) return false;
    const std::uint64_t mine = round.start(work.rank);
    const Operand result = is_root ? output(mine) : slot(Mesh::from(work.root));
    if (!exec.combine(result, mesh.contributions(input(mine)), round.length(work.rank), Last::yes)) {
      return false;
    }
    mesh.releaseAll(exec);
    return true;
  };
  return overlapRounds(work, nextDirectRound(work), begin, finish) && mesh.drainAll(exec);
}

/// Block r of the input (count elements each) is reduced over all ranks into the output of rank r.
template <Executor E>
TUTTI_PROGRAM bool directReduceScatter(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const auto block = [&](std::int32_t r, std::uint64_t at) {
    return input(static_cast<std::uint64_t>(r) * work.count + at);
  };
  const auto begin = [&](std::uint64_t at, std::uint64_t n) {
    return mesh.forPeers([&](std::int32_t peer) {
      if (!exec.reserve(Mesh::to(peer))) return false;
      exec.lend(Mesh::to(peer), n, Loan(block(peer, at)));
      return true;
    });
  };
  const auto finish = [&](std::uint64_t at, std::uint64_t n) {
    if (!mesh.awaitAll(exec)) return false;
    if (!exec.combine(output(at), mesh.contributions(block(work.rank, at)), n, Last::yes)) return false;
    mesh.releaseAll(exec);
    return true;
  };
  return overlapSlots(work, begin, finish) && mesh.drainAll(exec);
}

/// The input of rank r (count elements) is copied to block r of every output.
template <Executor E>
TUTTI_PROGRAM bool directAllGather(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const auto block = [&](std::int32_t r, std::uint64_t at) {
    return output(static_cast<std::uint64_t>(r) * work.count + at);
  };
  const auto begin = [&](std::uint64_t at, std::uint64_t n) {
    // Before it is lent: in place, this writes what the peers read.
    if (!exec.combine(block(work.rank, at), input(at), n, Last::no)) return false;
    return mesh.forPeers([&](std::int32_t peer) {
      if (!exec.reserve(Mesh::to(peer))) return false;
      exec.lend(Mesh::to(peer), n, Loan(input(at)));
      return true;
    });
  };
  const auto finish = [&](std::uint64_t at, std::uint64_t n) {
    return mesh.forPeers([&](std::int32_t peer) {
      if (!exec.await(Mesh::from(peer)) ||
          !exec.combine(block(peer, at), slot(Mesh::from(peer)), n, Last::no)) {
        return false;
      }
      exec.release(Mesh::from(peer));
      return true;
    });
  };
  return overlapSlots(work, begin, finish) && mesh.drainAll(exec);
}

/// The root's input is copied to every output. Each peer first sends the root an empty slot: every pair then
/// exchanges both ways, as packet links need it, and ranks that disagree on the root hear of each other.
template <Executor E>
TUTTI_PROGRAM bool directBroadcast(E& exec, const LaneWork& work) {
  const Mesh mesh{work.nranks, work.rank};
  const bool is_root = work.rank == work.root;
  const auto begin = [&](std::uint64_t at, std::uint64_t n) {
    if (!is_root) {
      if (!exec.reserve(Mesh::to(work.root))) return false;
      exec.post(Mesh::to(work.root), 0);
      return true;
    }
    if (!exec.combine(output(at), input(at), n, Last::no)) return false;
    return mesh.forPeers([&](std::int32_t peer) {
      if (!exec.reserve(Mesh::to(peer))) return false;
      exec.lend(Mesh::to(peer), n, Loan(input(at)));
      return true;
    });
  };
  const auto finish = [&](std::uint64_t at, std::uint64_t n) {
    if (is_root) {
      if (!mesh.awaitAll(exec)) return false;
      mesh.releaseAll(exec);
      return true;
    }
    const Inbound in = Mesh::from(work.root);
    if (!exec.await(in) || !exec.combine(output(at), slot(in), n, Last::no)) return false;
    exec.release(in);
    return true;
  };
  return overlapSlots(work, begin, finish) && (!is_root || mesh.drainAll(exec));
}

}  // namespace tutti
