// The Sim executor: all ranks and lanes of an operation in one thread, interleaved by a seed.
//
// Every rank's lane is a fibre. At every verb the scheduler picks, from the seed, who goes on: a fibre, or
// the delivery of something that was posted or released, for neither is seen by the other side at once. Slots
// have owners: between reserve and post the sender, between await and release the receiver, else nobody, and
// then they are filled with a poison. A verb that breaks the rules, or a state in which nobody can go on,
// ends the run with a report in words. The same seed gives the same run.
//
// Loans go by reference or as bytes, as the seed says: a program must be right either way (unless
// mayReferInPlace() rules references out). What was lent is
// the peer's until it was given back and the lender has learned of it, and conflicting use by its owner is an
// ownership error. Packet links have no acknowledgements; a packet slot that is written before the peer is
// known to have read it is an error, and messages arrive in two parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "collectives/executor.h"
#include "collectives/link_ends.h"
#include "kernels/fibre/fibre.h"
#include "kernels/host/combine.h"
#include "runtime/core/link.h"
#include "runtime/core/plan.h"

namespace tutti {

struct SimOptions {
  std::vector<LinkEnds> links;  ///< of each lane
  std::uint32_t slot_count = 2;
  std::uint64_t seed = 0;
  std::size_t input_bytes = 0;     ///< per rank
  std::size_t output_bytes = 0;    ///< per rank
  std::vector<Scale> scales = {};  ///< by rank: what its contribution is multiplied by, for premul_sum
  bool in_place = false;           ///< input is part of output (or the reverse), at `in_place_offset`
  std::function<std::size_t(int rank)> in_place_offset = nullptr;  ///< bytes; into the larger of the two
};

/// One simulated operation. Fill input(rank), run, read output(rank).
class Sim {
 public:
  /// One rank's lane.
  class Executor {
   public:
    Executor(Sim& sim, int rank, std::uint32_t lane) : sim_(sim), rank_(rank), lane_(lane) {}

    int rank() const { return rank_; }
    std::uint32_t lane() const { return lane_; }

    bool await(Inbound in);
    bool reserve(Outbound out);
    bool combine(Operands dsts, Operands srcs, std::uint64_t n, Last last);
    void post(Outbound out, std::uint64_t n);
    void release(Inbound in);
    void lend(Outbound out, std::uint64_t n, const Loan& loan);
    bool drain(Outbound out);

   private:
    Sim& sim_;
    int rank_;
    std::uint32_t lane_;
  };
  using Program = std::function<bool(Executor&)>;

  Sim(const Plan& plan, SimOptions options);
  Sim(const Sim&) = delete;
  Sim& operator=(const Sim&) = delete;
  ~Sim();

  std::byte* input(int rank) { return ranks_[static_cast<std::size_t>(rank)].input; }
  std::byte* output(int rank) { return ranks_[static_cast<std::size_t>(rank)].output; }

  /// Runs the program on every rank and lane. Returns "" or the report: who broke which rule, or who waits
  /// for whom; the report ends with the seed.
  std::string run(const Program& program);

  std::uint64_t decisions() const { return decisions_; }

 private:
  enum class SlotState : std::uint8_t { free, filling, posted, reading };

  struct Slot {
    SlotState state = SlotState::free;
    std::vector<std::byte> bytes;
    SlotHeader header;
    std::uint64_t filled = 0;    ///< elements written since reserve
    std::uint64_t answered = 0;  ///< elements of the result that the receiver has left
    std::optional<Loan> loan;    ///< what was lent in it, until it is settled

    bool isReference() const { return header.kind != SlotKind::inline_data; }
    bool mustReturn() const { return loan && (loan->returns || isReference()); }
  };

  /// Counters as each side sees them: a delivery moves the seen value towards the true one.
  struct SimLink {
    LinkEnds ends;
    std::vector<Slot> slots;
    std::uint64_t posted = 0;
    std::uint64_t posted_seen = 0;
    std::uint64_t whole_seen = 0;  ///< packets: slots that have arrived to the last line
    std::uint64_t released = 0;
    std::uint64_t released_seen = 0;
    std::uint64_t settled = 0;    ///< slots before this one are the sender's own again, results brought home
    std::uint64_t to_return = 0;  ///< slots before this one must come back before the end

    Slot& at(std::uint64_t sequence) { return slots[sequence % slots.size()]; }
  };

  struct Rank {
    std::vector<std::byte> memory;
    std::byte* input = nullptr;
    std::byte* output = nullptr;
  };

  /// One lane of one rank, and what it waits for.
  struct Strand {
    int rank = 0;
    std::uint32_t lane = 0;
    std::unique_ptr<Fibre> fibre;
    std::function<bool()> ready;          ///< empty: runnable
    std::function<std::string()> reason;  ///< what it waits for, in words
  };

  struct Range {
    std::byte* data;
    std::uint64_t elements;
  };

  // Scheduling.
  void schedule();
  bool pick(std::vector<std::function<void()>>& actions);
  bool pause(int rank, std::uint32_t lane);
  bool waitFor(int rank, std::uint32_t lane, std::function<bool()> ready,
               std::function<std::string()> reason);
  Strand& strand(int rank, std::uint32_t lane);
  void failWith(int rank, std::uint32_t lane, const std::string& text);
  std::string deadlockReport();
  void checkEnd();
  void checkLink(std::uint32_t lane, SimLink& link);

  // Links and memory.
  SimLink& inbound(int rank, std::uint32_t lane, std::uint16_t number);
  SimLink& outbound(int rank, std::uint32_t lane, std::uint16_t number);
  Range userRange(int rank, const Operand& operand, std::uint64_t n) const;
  Range resolveSource(int rank, std::uint32_t lane, const Operand& operand, std::uint64_t n);
  Range resolveDestination(int rank, std::uint32_t lane, const Operand& operand, std::uint64_t n);
  void checkNotLent(int rank, const std::byte* data, std::uint64_t n, bool writes);
  Slot& publish(int rank, std::uint32_t lane, Outbound out, std::uint64_t n, SlotKind kind);
  void requireReadByPeer(int rank, std::uint32_t lane, std::uint16_t number);
  void settle(int rank, SimLink& link, std::uint64_t before);
  Scale scaleOf(int rank) const;
  bool awaitWhole(int rank, std::uint32_t lane, Operands srcs);
  bool usesPackets() const { return plan_.slots == SlotForm::packets; }
  static void poison(Slot& slot);

  Plan plan_;
  SimOptions options_;
  std::mt19937_64 random_;
  CombineFn combine_;
  std::size_t element_bytes_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<SimLink>> links_;  ///< by lane
  std::vector<Strand> strands_;
  std::size_t slow_strand_ = 0;  ///< rarely scheduled, so that others run far ahead
  std::string report_;
  std::uint64_t decisions_ = 0;
};

using SimExecutor = Sim::Executor;
static_assert(tutti::Executor<SimExecutor>);

}  // namespace tutti
