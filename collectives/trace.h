// The Trace executor: moves no bytes, records what a program would do; and the proof over the records.
//
// One TraceExecutor per rank and lane records its program's verbs, every wait succeeding at once. replay()
// then plays the records of all ranks against each other with symbols in place of numbers: every element
// remembers which ranks' contributions it holds, so that "each contribution enters exactly once" is a fact of
// the result, not of an example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/executor.h"
#include "collectives/link_ends.h"

namespace tutti {

/// One verb as it was called.
struct TraceEvent {
  enum class Verb : std::uint8_t { await, reserve, combine, post, release, lend, drain };
  Verb verb = Verb::await;
  std::uint16_t link = 0;
  std::uint64_t n = 0;
  bool last = false;
  std::vector<Operand> dsts;  ///< lend: the place of the result, if there is one
  std::vector<Operand> srcs;  ///< lend: what is lent
};

/// Records one rank's share of one lane.
class TraceExecutor {
 public:
  bool await(Inbound in);
  bool reserve(Outbound out);
  bool combine(Operands dsts, Operands srcs, std::uint64_t n, Last last);
  void post(Outbound out, std::uint64_t n);
  void release(Inbound in);
  void lend(Outbound out, std::uint64_t n, const Loan& loan);
  bool drain(Outbound out);

  const std::vector<TraceEvent>& events() const { return events_; }

 private:
  std::vector<TraceEvent> events_;
};
static_assert(Executor<TraceExecutor>);

/// What one element holds.
struct Symbol {
  std::uint64_t own = 0;      ///< bit r: rank r's contribution to a reduction
  std::uint64_t copied = 0;   ///< bit r: rank r's input, copied
  std::uint64_t element = 0;  ///< which element of the input it stems from
  std::uint32_t lasts = 0;    ///< how often a completing combine was applied
  std::uint64_t terms = 0;    ///< hash of the whole expression: equal ones give equal bits

  /// The same contributions, in whatever order.
  bool holdsSame(const Symbol& other) const {
    return own == other.own && copied == other.copied && element == other.element && lasts == other.lasts;
  }
};

/// The records of all ranks; trace[rank][lane].
using Traces = std::vector<std::vector<std::vector<TraceEvent>>>;

struct ReplayOptions {
  std::vector<LinkEnds> links;  ///< of each lane
  bool packets = false;         ///< the links are packet links: no acknowledgements; slot_count is not used
  std::uint32_t slot_count = 2;
  std::uint64_t slot_elements = 1;
  std::uint64_t input_elements = 0;   ///< per rank
  std::uint64_t output_elements = 0;  ///< per rank
};

struct Replay {
  std::string error;                         ///< empty if the records fit together; else the first misfit
  std::vector<std::vector<Symbol>> outputs;  ///< by rank
  std::vector<std::uint64_t> sent_elements;  ///< by rank
  std::vector<std::uint64_t> steps;          ///< slots posted, by rank
  std::uint64_t most_outstanding = 0;        ///< most slots posted and not released on any link
};

/// Plays the records with slot_count slots per link. Finds: deadlock, use of a slot outside reserve...post or
/// await...release, lengths that do not fit, a contribution that enters twice, elements of different places
/// reduced together, reads of what was never written, slots posted and never received or released, results
/// that were not left or not brought home, packet slots that are written before the peer is known to have
/// read them.
Replay replay(const Traces& traces, const ReplayOptions& options);

}  // namespace tutti
