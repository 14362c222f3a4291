// The timing loop of the comparison, the same for every library.
//
// A library can look fast by leaving work to whoever touches the buffers next (streaming stores, lines left
// in the other core's cache), or by finding everything in its own cache because nobody touched it. So each
// iteration does what an application does, and the whole is timed, with no barrier in it:
//
//   n x { rewrite all of the input; call; read and check all of the output }     -> loop
//   n x { rewrite all of the input;       read and check all of the output }     -> touch
//   time of the call = (loop - touch) / n
//
// Timing the calls alone would not do: a rank that comes early waits inside its call for the other one's
// touching, and the rank that comes late finds work done already. Both stretches are timed on all ranks at
// once, so that they share the memory, and the slowest rank counts. What a call makes the touching slower is
// the call's cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/peers/peer.h"

namespace tutti::peers {

struct LoopSettings {
  double budget_us;  ///< aim for one stretch of calls
  int samples;       ///< pairs of stretches
  bool in_place;
};

struct Timing {
  std::uint64_t iterations = 0;  ///< of one stretch
  std::vector<double> loop_us;   ///< per iteration, one per sample
  std::vector<double> touch_us;
  std::uint64_t wrong = 0;  ///< outputs with a wrong element, on the rank that has most
};

/// The call that moves `bytes` per rank, the larger of both sides (blocks are rounded down).
Operation operationOf(Kind kind, Type type, std::size_t bytes, int nranks);

/// Collective. `send` and `recv` have room for the larger of both sides.
Timing measure(Peer& peer, const Operation& operation, const LoopSettings& settings, std::byte* send,
               std::byte* recv);

}  // namespace tutti::peers
