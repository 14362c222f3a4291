// What one rank of a GPU shows to the other ranks of its host: one allocation of its GPU's memory.
//
//   marks │ for each lane and peer: credits, arrivals, headers, slots │ for each peer: packets
//
// Ranks are counted within the host here. A side polls its own memory only: `posted`, headers and slots of a
// link lie with the receiver, `released` with the sender; each is written by the other side. All-zero memory
// is links that are empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "runtime/core/types.h"

namespace tutti {

/// What a rank leaves in memory to show that it can reach it.
struct CudaMark {
  std::array<std::uint8_t, 16> process_token{};
  std::uint64_t address = 0;  ///< of its own memory
  std::int64_t rank = -1;

  friend bool operator==(const CudaMark&, const CudaMark&) = default;
};
static_assert(sizeof(CudaMark) == 32);

/// The memory of one rank, wherever it is mapped. A value; nothing here reads or writes it.
class CudaRankMemory {
 public:
  /// A multiple of what IPC hands over at once, so that nothing else lies in what peers map.
  static std::size_t bytes(const LinkShape& shape, int local_count);

  CudaRankMemory() = default;
  /// Of local rank `owner`, in a place that is aligned to 128 bytes.
  CudaRankMemory(std::byte* base, const LinkShape& shape, int local_count, int owner);

  std::byte* base() const { return base_; }
  int owner() const { return owner_; }

  /// The owner's mark, and where rank `from` leaves its own. `scratch`: where the owner copies to what it
  /// reads of a peer.
  CudaMark* mark() const { return marks(); }
  CudaMark* scratch() const { return marks() + 1; }
  CudaMark* markOf(int from) const { return marks() + 2 + from; }

  /// The link from `sender` to `receiver`; `peer` of the view is the caller's to set.
  static LinkView link(const CudaRankMemory& receiver, const CudaRankMemory& sender, std::uint32_t lane);
  /// The same for packets: two slots without headers. Only where there are at most kMaxMeshRanks.
  static LinkView packets(const CudaRankMemory& receiver, const CudaRankMemory& sender);

 private:
  CudaMark* marks() const { return reinterpret_cast<CudaMark*>(base_); }
  std::byte* linkPart(std::uint32_t lane, int peer) const;
  std::byte* packetPart(int peer) const;
  std::size_t index(int peer) const { return static_cast<std::size_t>(peer < owner_ ? peer : peer - 1); }

  std::byte* base_ = nullptr;
  LinkShape shape_;
  int local_count_ = 0;
  int owner_ = -1;
};

}  // namespace tutti
