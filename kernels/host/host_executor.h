// Runs programs on host memory, in the thread that called: no hop to another thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/executor.h"
#include "kernels/host/combine.h"
#include "runtime/core/fault.h"
#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "runtime/core/region.h"
#include "runtime/core/scale.h"
#include "runtime/core/types.h"
#include "runtime/core/wait.h"
#include "transports/peer_memory.h"

namespace tutti {

/// The user's memory. No alignment is required.
struct UserBuffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  RegionPlace input_region = {};
  RegionPlace output_region = {};
  Scale scale = {};  ///< of this rank's contribution, for operations that scale
};

/// What the awaited slot of a link stands for.
struct HeldSlot {
  const std::byte* from = nullptr;  ///< the data
  std::byte* to = nullptr;          ///< where a result goes
  std::uint64_t to_address = 0;  ///< not 0: where the result is then copied to, in the peer's address space
  std::uint32_t bytes = 0;
  bool is_in_place = false;  ///< from and to are the peer's own memory
  Scale scale;
};

/// What executors keep about one peer. It lies with the communicator, because there may be many peers and an
/// operation may take less time than clearing their states.
struct PeerState {
  std::uint64_t sending = 0;  ///< number of the executor that sent to the peer, and has not drained the link
  std::uint64_t first = 0;    ///< of that executor: its first slot to the peer
  std::uint64_t returning = 0;  ///< of that executor: slots before this one must come back before the end
  bool is_written = false;      ///< the held slot got a result
  std::uint64_t borrowing = 0;  ///< number of the executor that works on the peer's memory; 0: none
  HeldSlot held = {};
};

/// What an executor works on; outlives it. Links and peers are numbered by rank. A link and its side of a
/// PeerState are used by one executor at a time.
struct HostLinks {
  std::span<const LinkView> inbound;
  std::span<const LinkView> outbound;
  std::span<PeerMemory> peers;             ///< what this rank can do with their memory
  std::span<const MemoryAccess> accepted;  ///< what they can do with this rank's
  std::span<PeerState> states;
  std::uint64_t executor = 0;    ///< number of the executor: another for each, never 0
  std::span<std::byte> scratch;  ///< for packets: hostScratchBytes(nranks)
  LoanPolicy loans = {};
};

/// What an executor has moved to and from other ranks. Payload bytes: the users' elements, counted once, by
/// the rank that moves them: in shared memory by the rank whose instructions copy, between hosts by the rank
/// that sends.
struct MovedData {
  std::uint64_t slots = 0;          ///< published
  std::uint64_t slot_bytes = 0;     ///< put into them; between hosts also what they refer to
  std::uint64_t read_bytes = 0;     ///< of peers' memory, read in place
  std::uint64_t written_bytes = 0;  ///< results left with peers
  std::uint64_t network_bytes = 0;  ///< of slot_bytes and written_bytes: sent to other hosts
};

/// Bytes of HostLinks::scratch: none where there are too many ranks for packets.
std::size_t hostScratchBytes(int nranks);

/// One lane of one operation. Lives for the operation; the links and buffers outlive it. A failed wait, and
/// memory of a peer that cannot be reached, leave the reason in the fault cell: look at it after the program
/// has returned true, too.
class HostExecutor {
 public:
  HostExecutor(const Plan& plan, const UserBuffers& buffers, const HostLinks& links, const WaitContext& wait,
               FaultCell& fault);
  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;

  bool await(Inbound in);
  bool reserve(Outbound out);
  bool combine(Operands dsts, Operands srcs, std::uint64_t n, Last last);
  void post(Outbound out, std::uint64_t n);
  void release(Inbound in);
  void lend(Outbound out, std::uint64_t n, const Loan& loan);
  bool drain(Outbound out);

  /// After a failure, in this order, with the failure shown to the other ranks in between: gives back what
  /// peers lent; waits until no peer works on memory that this rank lent them. Of a peer in another process,
  /// which may have been stopped or killed, for up to half a second: what it finds there then it does not
  /// use, but what it was about to leave there it may. Of one in this process for up to 10 s.
  void giveBackAll();
  void awaitOwn() const;

  /// Of the operation. It may not be in the fault cell yet.
  bool hasFailed() const { return has_failed_; }

  const MovedData& moved() const { return moved_; }

 private:
  bool usesPackets() const { return plan_.slots == SlotForm::packets; }
  const std::byte* source(const Operand& operand) const;
  std::byte* destination(const Operand& operand) const;
  bool gatherPackets(const Operand& operand, std::uint64_t bytes);
  void writePacket(Outbound out, const std::byte* data, std::uint64_t bytes);
  bool refuseSlot(const LinkView& link, const SlotHeader& header, std::uint64_t sequence);
  bool resolve(const LinkView& link, const SlotHeader& header, std::uint64_t sequence, HeldSlot& held);
  bool resolveRegions(const LinkView& link, const SlotHeader& header, HeldSlot& held);
  bool borrow(const LinkView& link);
  bool isStillLent(const LinkView& released);
  void giveBack(const LinkView& link, PeerState& from);
  bool unreachable(const LinkView& link, const std::string& error);
  SlotKind kindOf(int peer, const Loan& loan, std::uint64_t bytes) const;
  const RegionPlace& regionOf(const Operand& operand) const;
  void countPosted(const LinkView& link, std::uint64_t bytes) {
    ++moved_.slots;
    moved_.slot_bytes += bytes;
    if (link.is_network) moved_.network_bytes += bytes;
  }
  void countWritten(const LinkView& link, std::uint64_t bytes) {
    moved_.written_bytes += bytes;
    if (link.is_network) moved_.network_bytes += bytes;
  }
  void publish(const LinkView& link, std::uint64_t sequence, const SlotHeader& header);
  void bringHome(const LinkView& link, std::uint64_t sequence);

  PeerState& state(std::size_t peer) const { return links_.states[peer]; }
  std::byte* scratch(std::size_t part) const { return links_.scratch.data() + part * scratch_part_; }

  const Plan& plan_;
  UserBuffers buffers_;
  HostLinks links_;
  const WaitContext& wait_;
  FaultCell& fault_;
  CombineFn combine_;
  std::size_t element_bytes_;
  std::uint64_t bytes_;  ///< of the operation: of the larger buffer
  std::size_t scratch_part_;
  bool may_refer_;  ///< to this rank's memory, in slots
  MovedData moved_;
  std::uint32_t borrowed_ = 0;  ///< links
  bool is_checked_ = true;      ///< what was worked on last was still lent
  bool has_failed_ = false;     ///< nothing is released any more
  bool streamed_ = false;       ///< streaming stores were made that no fence has ordered yet
};

static_assert(Executor<HostExecutor>);

}  // namespace tutti
