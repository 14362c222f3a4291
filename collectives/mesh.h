// One rank's view of the full mesh of a lane: a link to and from every other rank. Shared by the direct and
// the one-shot programs.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/executor.h"
#include "runtime/core/types.h"

namespace tutti {

/// A list of operands of a combine with one entry per rank or peer.
class OperandList {
 public:
  constexpr void add(Operand operand) { operands_[size_++] = operand; }
  constexpr Operands view() const { return {operands_.data(), size_}; }

 private:
  std::array<Operand, kMaxMeshRanks> operands_{};
  std::size_t size_ = 0;
};

/// At most kMaxMeshRanks ranks.
struct Mesh {
  std::int32_t nranks;
  std::int32_t rank;

  static constexpr Inbound from(std::int32_t peer) { return {static_cast<std::uint16_t>(peer)}; }
  static constexpr Outbound to(std::int32_t peer) { return {static_cast<std::uint16_t>(peer)}; }

  /// Calls visit(peer) for each other rank, each rank starting with its right neighbour, so that not all turn
  /// to the same peer first. Stops and returns false when visit does.
  template <class Visit>
  constexpr bool forPeers(const Visit& visit) const {
    for (std::int32_t distance = 1; distance < nranks; ++distance) {
      if (!visit((rank + distance) % nranks)) return false;
    }
    return true;
  }

  /// What every rank contributes to a block, in the order of ranks: `mine` of this rank, slots of the others.
  /// One order everywhere means one result everywhere.
  constexpr OperandList contributions(Operand mine) const {
    OperandList list;
    for (std::int32_t r = 0; r < nranks; ++r) list.add(r == rank ? mine.own() : slot(from(r)).own());
    return list;
  }

  template <Executor E>
  bool awaitAll(E& exec) const {
    return forPeers([&](std::int32_t peer) { return exec.await(from(peer)); });
  }

  template <Executor E>
  void releaseAll(E& exec) const {
    forPeers([&](std::int32_t peer) {
      exec.release(from(peer));
      return true;
    });
  }

  template <Executor E>
  bool drainAll(E& exec) const {
    return forPeers([&](std::int32_t peer) { return exec.drain(to(peer)); });
  }
};

}  // namespace tutti
