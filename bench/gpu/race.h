// Measures contenders in turn, so that whatever changes in the machine hits all alike; checks their results
// first.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bench/gpu/contender.h"

namespace tutti::gpu_bench {

enum class Mode {
  stream,   ///< many calls queued on a stream; the time of one
  graph,    ///< the same calls captured, and replayed
  latency,  ///< each call is waited for; also how long the call itself took
};

struct RaceOptions {
  Arrangement arrangement;
  Mode mode = Mode::stream;
  std::vector<std::size_t> bytes;  ///< multiples of 16
  int rounds = 7;
  double sample_us = 5000;  ///< about how long one sample takes
};

/// Prints a line for each size and contender: the times of all rounds, each that of the slowest rank. Throws,
/// or ends the process with status 1 and a message, where a result is wrong or a call fails.
void race(const RaceOptions& options, const std::vector<std::unique_ptr<Contender>>& contenders);

}  // namespace tutti::gpu_bench
