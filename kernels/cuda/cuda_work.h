// What the host hands to the kernels: fixed layouts, shared by host and device code.
//
// Where things lie, and who writes them:
//   CudaRank, CudaLinkEnd   memory of the rank's own GPU. The host fills them in before the first launch;
//   then
//                           only kernels of the rank write (sequence numbers). A captured graph replays,
//                           because the host passes no number.
//   links                   LinkView: addresses as this GPU sees them. `posted`, headers and slots lie with
//   the
//                           receiver, `released` with the sender, so that each side polls memory of its own.
//                           Where GPUs cannot reach each other, and between hosts, all of it is pinned host
//                           memory.
//   CudaControl             pinned host memory: the host's word to kernels, and theirs to it.
//   RankStatus              the rank's line of the status board, pinned: kernels enter and complete
//   operations.
// All kernels of a rank run one after the other: each word has one writer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/core/descriptor.h"
#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/region.h"
#include "runtime/core/ring_orders.h"
#include "runtime/core/scale.h"
#include "runtime/core/types.h"

namespace tutti {

/// A region of a peer, as the kernel has found it in the table of CudaRegions: that lies behind the bus.
struct CudaKnownRegion {
  std::uint64_t kernel = 0;  ///< in which kernel: the host may change the table before the next; 0: none
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
};

/// This rank's end of a link. 128 bytes apart, since blocks of one kernel write to neighbours.
struct alignas(128) CudaLinkEnd {
  LinkView view;
  std::uint64_t sequence = 0;  ///< outbound: slots posted; inbound: slots released
  // Notes of the kernel that uses the link.
  std::uint64_t home = 0;       ///< outbound: results of slots before this one are where they belong
  std::uint64_t returning = 0;  ///< outbound: slots before this one must come back before the end
  std::uint64_t from = 0;       ///< inbound: where the data of the awaited slot is
  std::uint64_t to = 0;         ///< inbound: where its result goes; outbound: the reserved slot
  std::uint64_t scale = 0;      ///< inbound: bits of the sender's Scale
  std::uint32_t bytes = 0;      ///< inbound: of the awaited slot
  std::uint32_t is_used = 0;    ///< inbound: the awaited slot got a result; packets: was read
  CudaKnownRegion from_region;  ///< inbound: which slots referred to last
  CudaKnownRegion to_region;
};
static_assert(sizeof(CudaLinkEnd) == 256);

/// Where this process has mapped a region of a peer; number 0: nowhere. In pinned host memory; written by the
/// host, number last (release), and emptied only while no kernel of the rank runs.
struct CudaRegion {
  std::atomic<std::uint32_t> number;
  std::uint32_t unused;
  std::byte* base;
  std::uint64_t bytes;
};
struct CudaRegions {
  std::array<CudaRegion, RegionTable::kSize> entries;  ///< region r: entry r % kSize
};

/// Why a kernel gave up.
enum class CudaFaultKind : std::uint32_t {
  none = 0,
  differs = 1,  ///< the slot of `peer` belongs to another operation: `theirs`
  damaged = 2,  ///< the slot of `peer` holds what cannot be: `sequence`, `bytes`; `expected` was expected
  unreachable =
      3,         ///< the slot of `peer` refers to a region (`sequence`: its number) that is not mapped here
  deadline = 4,  ///< waited longer than wait_limit_ns
};

/// The first fault of a kernel. Whoever changes `claimed` from 0 to 1 writes the rest, `kind` last (release).
struct CudaFault {
  std::atomic<std::uint32_t> claimed;
  std::atomic<std::uint32_t> kind;  ///< CudaFaultKind
  std::int32_t peer;
  std::uint32_t bytes;
  Descriptor ours;
  Descriptor theirs;
  std::uint64_t operation;  ///< collectives: its number on the status board; transfers: 0
  std::uint64_t sequence;
  std::uint64_t expected;
};

/// What a block of the running kernel waits for, for whoever looks after ranks. Written by the block, once a
/// wait has lasted for kReportedAfterNs, and cleared after it: relaxed stores of 8 bytes each, serial last
/// (release). A reader that finds the same serial before and after has read what belongs together.
struct alignas(64) CudaWait {
  std::atomic<std::uint64_t> serial;  ///< 0: waits for nobody; else another number for each wait
  std::uint64_t operation;            ///< collectives: its number on the status board; transfers: 0
  Descriptor descriptor;
  std::int32_t peer;
  std::uint32_t is_send;  ///< transfers: which side this rank is
};
inline constexpr std::uint64_t kReportedAfterNs = 10'000'000;

/// Most blocks of one launch: lanes of a collective, or queues of transfers.
inline constexpr std::uint32_t kCudaMostBlocks = 128;

/// One per rank, pinned host memory, zero at the start. What host and kernels write lies apart.
struct CudaControl {
  // Written by the host.
  std::atomic<std::uint32_t> stop;           ///< not 0: every wait of every kernel fails
  std::atomic<std::uint64_t> wait_limit_ns;  ///< longest wait, the last resort; 0: none
  // Written by kernels.
  alignas(128) std::atomic<std::uint64_t> started;  ///< kernels
  std::atomic<std::uint64_t> finished;
  /// As MovedData: sums since the start, stored at the end of each kernel.
  std::atomic<std::uint64_t> slots;
  std::atomic<std::uint64_t> slot_bytes;
  std::atomic<std::uint64_t> read_bytes;
  std::atomic<std::uint64_t> written_bytes;
  std::atomic<std::uint64_t> network_bytes;
  std::atomic<std::uint64_t> operations;  ///< collectives completed
  CudaFault fault;
  std::array<CudaWait, kCudaMostBlocks> waits;
};

/// What kernels have moved, as MovedData of the host's executor.
struct CudaMoved {
  std::uint64_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t network_bytes = 0;
};

/// What every kernel of a rank knows; in memory of its GPU.
struct CudaRank {
  std::int32_t rank = 0;
  std::int32_t nranks = 1;
  CudaLinkEnd* inbound = nullptr;  ///< [lane * nranks + peer]
  CudaLinkEnd* outbound = nullptr;
  CudaLinkEnd* packets_in = nullptr;  ///< [peer]; nullptr: none
  CudaLinkEnd* packets_out = nullptr;
  CudaRegions* regions = nullptr;  ///< [peer]
  RingOrders rings = {};           ///< in memory of the GPU
  CudaControl* control = nullptr;
  RankStatus* status = nullptr;
  // Written by kernels. Blocks of one kernel share these: atomics of device scope while it runs.
  std::uint64_t kernels = 0;          ///< that have ended
  std::uint64_t operation = 0;        ///< collectives completed; the running one is the next
  std::uint32_t finished_blocks = 0;  ///< of the running kernel
  std::uint32_t failed = 0;           ///< 1: a block gave up; nothing runs any more
  CudaMoved moved = {};
};

/// One program: a collective, or a transfer.
struct CudaTask {
  enum class Kind : std::uint32_t { collective = 0, send = 1, receive = 2 };

  Kind kind = Kind::collective;
  std::int32_t peer = -1;  ///< transfers
  Plan plan;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  RegionPlace input_region = {};
  RegionPlace output_region = {};
  /// To which peers, all of rank < 64, this task may lend by address, and by region; never over the network.
  std::uint64_t lends_address = 0;
  std::uint64_t lends_region = 0;
  Scale scale = {};                ///< of this rank's contribution, for operations that scale (not avg)
  const void* scale_at = nullptr;  ///< if set, one element of the type that is read there when it runs
};

/// A collective: one task; its lanes are the blocks. Transfers: block b runs tasks first[b] to first[b + 1],
/// which lie in memory that the GPU can read.
struct CudaCollectiveArgs {
  CudaRank* rank = nullptr;
  CudaTask task;
};
struct CudaTransferArgs {
  CudaRank* rank = nullptr;
  const CudaTask* tasks = nullptr;
  const std::uint32_t* first = nullptr;
};

static_assert(std::is_trivially_copyable_v<CudaTask> && std::is_trivially_copyable_v<CudaLinkEnd>);

}  // namespace tutti
