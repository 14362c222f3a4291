// One rank's view of the full mesh of a lane: a link to and from every other rank. Shared by the direct, the
// one-shot and the personalized programs.
#pragma once

#include <cstdint>

#include "collectives/executor.h"

namespace tutti {

/// Contributions and results are lists of at most kMaxMeshRanks ranks (runtime/core/types.h).
struct Mesh {
  std::int32_t nranks;
  std::int32_t rank;

  static constexpr Inbound from(std::int32_t peer) { return {static_cast<std::uint16_t>(peer)}; }
  static constexpr Outbound to(std::int32_t peer) { return {static_cast<std::uint16_t>(peer)}; }

  /// Calls visit(peer) for each other rank, each rank starting with its right neighbour, so that not all turn
  /// to the same peer first. Stops and returns false when visit does.
  template <class Visit>
  TUTTI_STEP bool forPeers(const Visit& visit) const {
    for (std::int32_t distance = 1; distance < nranks; ++distance) {
      if (!visit((rank + distance) % nranks)) return false;
    }
    return true;
  }

  /// What every rank contributes to a block, in the order of ranks: `mine` of this rank, slots of the others.
  /// One order everywhere means one result everywhere.
  constexpr Operands contributions(Operand mine) const {
    return Operands::slots(slot(from(0)).own(), nranks).with(rank, mine.own());
  }

  /// Where results go that every rank gets: `mine` of this rank, and into what the others lent.
  constexpr Operands results(Operand mine) const {
    return Operands::slots(slot(from(0)), nranks).with(rank, mine);
  }

  /// A slot to every other rank.
  constexpr Operands outboundSlots() const { return Operands::slots(slot(to(0)), nranks).without(rank); }

  template <Executor E>
  TUTTI_STEP bool awaitAll(E& exec) const {
    return forPeers([&](std::int32_t peer) { return exec.await(from(peer)); });
  }

  template <Executor E>
  TUTTI_STEP void releaseAll(E& exec) const {
    forPeers([&](std::int32_t peer) {
      exec.release(from(peer));
      return true;
    });
  }

  template <Executor E>
  TUTTI_STEP bool drainAll(E& exec) const {
    return forPeers([&](std::int32_t peer) { return exec.drain(to(peer)); });
  }
};

}  // namespace tutti
