// The hierarchical program: all-reduce for several hosts with several ranks each.
//
// Ranks are numbered host by host. Local rank l of every host is in charge of part l of the data, so that
// between two hosts each part travels once, and all ranks of a host use the network at the same time. Two
// hosts of two ranks, data in two parts A and B, x1 = rank 1's part x:
//
//             host 0:  rank 0         rank 1            host 1:  rank 2         rank 3
//   inside    sends    B0 to 1        A1 to 0                    B2 to 3        A3 to 2
//             sums     A01            B01                        A23            B23
//   between   sends    A01 to 2       B01 to 3                   A23 to 0       B23 to 1
//             sums     A01 + A23      B01 + B23                  A01 + A23      B01 + B23
//   inside    lends    A to 1         B to 0                     A to 3         B to 2
//
// Two hosts exchange their sums; more pass them round a ring of the ranks with the same l (ring.h). Every
// element is reduced along one expression, host by host, wherever it is computed: all ranks end with the same
// bits.
//
// Cost, for S bytes, m ranks on each of h hosts: a rank sends 2(m-1)/m S inside its host, and 2(h-1)/h S/m
// between hosts. The network of a host carries 2(h-1)/h S, where a ring of all ranks sends 2(hm-1)/(hm) S
// through it: for two hosts of two ranks two thirds, and in one step between hosts instead of two or more.
//
// Work goes in rounds of at most a slot for each part, a few at a time (rounds.h); the next few are summed
// inside the host before these are finished, so that the network is not idle meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/executor.h"
#include "collectives/mesh.h"
#include "collectives/ring.h"
#include "collectives/rounds.h"
#include "runtime/core/plan.h"

namespace tutti {

template <Executor E>
class HierarchicalAllReduce {
 public:
  constexpr HierarchicalAllReduce(E& exec, const LaneWork& work)
      : exec_(exec),
        work_(work),
        local_count_(work.ranks_per_host),
        hosts_(work.nranks / work.ranks_per_host),
        host_(work.rank / work.ranks_per_host),
        local_(work.rank % work.ranks_per_host) {}

  TUTTI_STEP bool run() {
    const std::uint64_t depth = std::max<std::uint64_t>(1, (work_.depth + 1) / 2);
    std::uint64_t begun = 0;
    for (std::uint64_t first = 0; first < rounds(); first += depth) {
      const std::uint64_t end = std::min(first + depth, rounds());
      for (; begun < std::min(end + depth, rounds()); ++begun) {
        if (!begin(begun)) return false;
      }
      if (!finish(first, end)) return false;
    }
    return forLocalPeers([this](std::int32_t l) { return exec_.drain(Mesh::to(rankOf(host_, l))); });
  }

 private:
  struct Part {
    std::uint64_t start;
    std::uint64_t length;
  };

  constexpr std::int32_t rankOf(std::int32_t host, std::int32_t local) const {
    return host * local_count_ + local;
  }
  constexpr Inbound fromLocal(std::int32_t l) const { return Mesh::from(rankOf(host_, l)); }
  constexpr Outbound toLocal(std::int32_t l) const { return Mesh::to(rankOf(host_, l)); }

  constexpr std::uint64_t blockLength() const {
    // Parts start at multiples of 64 elements, so that two ranks do not write to one cache line.
    constexpr std::uint64_t kGrain = 64;
    constexpr std::uint64_t kRounds = 4;
    const auto parts = static_cast<std::uint64_t>(local_count_);
    const std::uint64_t share = (work_.end - work_.begin + parts - 1) / parts;
    // A few rounds where that leaves blocks that are not too small, so that inside and between hosts overlap.
    const std::uint64_t block = std::max(work_.slot_elements / 8, share / kRounds);
    return std::min(work_.slot_elements, (block + kGrain - 1) / kGrain * kGrain);
  }
  constexpr std::uint64_t roundLength() const {
    return blockLength() * static_cast<std::uint64_t>(local_count_);
  }
  constexpr std::uint64_t rounds() const {
    const std::uint64_t n = work_.end - work_.begin;
    return n == 0 ? 0 : (n + roundLength() - 1) / roundLength();
  }
  /// What local rank `l` is in charge of; short or empty at the end of the data.
  constexpr Part part(std::uint64_t round, std::int32_t l) const {
    const std::uint64_t at = work_.begin + round * roundLength();
    const std::uint64_t start = std::min(at + static_cast<std::uint64_t>(l) * blockLength(), work_.end);
    return {start, std::min(blockLength(), work_.end - start)};
  }

  template <class Visit>
  TUTTI_STEP bool forLocalPeers(const Visit& visit) const {
    for (std::int32_t distance = 1; distance < local_count_; ++distance) {
      if (!visit((local_ + distance) % local_count_)) return false;
    }
    return true;
  }

  /// Sums this host's contributions to the own part into the output; two hosts send the sum on at once.
  TUTTI_STEP bool begin(std::uint64_t round) {
    // Copied, not lent: in place, results are written over it before the loan is known to be over.
    const auto send = [&](std::int32_t l) {
      const Part theirs = part(round, l);
      if (!exec_.reserve(toLocal(l)) ||
          !exec_.combine(slot(toLocal(l)), input(theirs.start), theirs.length, Last::no)) {
        return false;
      }
      exec_.post(toLocal(l), theirs.length);
      return true;
    };
    if (!forLocalPeers(send)) return false;
    if (!forLocalPeers([this](std::int32_t l) { return exec_.await(fromLocal(l)); })) return false;
    const Part mine = part(round, local_);
    const Operands contributions =
        Operands::slots(slot(fromLocal(0)).own(), local_count_).with(local_, input(mine.start).own());
    const Outbound across = Mesh::to(rankOf(1 - host_, local_));
    if (hosts_ == 2 && !exec_.reserve(across)) return false;
    const Operands results =
        hosts_ == 2 ? Operands(output(mine.start), slot(across)) : Operands(output(mine.start));
    if (!exec_.combine(results, contributions, mine.length, Last::no)) return false;
    if (hosts_ == 2) exec_.post(across, mine.length);
    forLocalPeers([this](std::int32_t l) {
      exec_.release(fromLocal(l));
      return true;
    });
    return true;
  }

  /// Makes the own parts of rounds `first` to `end` complete and hands them to the other ranks of this host.
  TUTTI_STEP bool finish(std::uint64_t first, std::uint64_t end) {
    if (!(hosts_ == 2 ? exchange(first, end) : passRound(first, end))) return false;
    for (std::uint64_t round = first; round < end; ++round) {
      if (!share(round)) return false;
    }
    return true;
  }

  TUTTI_STEP bool share(std::uint64_t round) {
    const Part mine = part(round, local_);
    const auto lend = [&](std::int32_t l) {
      if (!exec_.reserve(toLocal(l))) return false;
      exec_.lend(toLocal(l), mine.length, Loan(output(mine.start)));
      return true;
    };
    const auto take = [&](std::int32_t l) {
      const Part theirs = part(round, l);
      if (!exec_.await(fromLocal(l)) ||
          !exec_.combine(output(theirs.start), slot(fromLocal(l)), theirs.length, Last::no)) {
        return false;
      }
      exec_.release(fromLocal(l));
      return true;
    };
    return forLocalPeers(lend) && forLocalPeers(take);
  }

  TUTTI_STEP bool exchange(std::uint64_t first, std::uint64_t end) {
    const Inbound across = Mesh::from(rankOf(1 - host_, local_));
    for (std::uint64_t round = first; round < end; ++round) {
      const Part mine = part(round, local_);
      if (!exec_.await(across)) return false;
      const Operand own = output(mine.start);
      const Operand one = host_ == 0 ? own : slot(across);
      const Operand other = host_ == 0 ? slot(across) : own;
      if (!exec_.combine(own, {one, other}, mine.length, Last::yes)) return false;
      exec_.release(across);
    }
    return true;
  }

  TUTTI_STEP bool passRound(std::uint64_t first, std::uint64_t end) {
    const auto hosts = static_cast<std::uint64_t>(hosts_);
    const auto batch = [&](const auto& visit) {
      for (std::uint64_t round = first; round < end; ++round) {
        const Part mine = part(round, local_);
        if (!visit(Round{mine.start, mine.length, (mine.length + hosts - 1) / hosts})) return false;
      }
      return true;
    };
    const Ring ring = Ring::across(hosts_, host_, local_count_, local_);
    return ringReduceBatch(exec_, ring, batch, [](std::uint64_t at) { return output(at); });
  }

  E& exec_;
  const LaneWork& work_;
  std::int32_t local_count_;
  std::int32_t hosts_;
  std::int32_t host_;
  std::int32_t local_;
};

/// The input is reduced over all ranks into every output.
template <Executor E>
TUTTI_PROGRAM bool hierarchicalAllReduce(E& exec, const LaneWork& work) {
  return HierarchicalAllReduce<E>(exec, work).run();
}

}  // namespace tutti
