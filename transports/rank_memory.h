// What one rank shows to the others of its host, in its part of a segment that all of them map:
//
//   token │ status line │ access │ regions │ links that it receives by: for each lane and peer │ packet
//   links: for each peer │ GPU regions, where the ranks work on GPUs
//
// Ranks are counted within the host here: "local". The receiver of a link owns its memory. All-zero memory is
// a rank that has done nothing yet and links that are empty, so nothing has to be initialised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/region.h"
#include "transports/peer_memory.h"
#include "transports/segment.h"

namespace tutti {

class RankMemory {
 public:
  /// What a rank can do with the memory of each other, where there are few enough.
  using AccessRow = std::array<MemoryAccess, kMaxMeshRanks>;

  /// Bytes of one rank's part: whole pages, because its owner allocates them.
  static std::size_t bytes(const LinkShape& shape, int local_count);

  /// The part of local rank `owner` in a segment of local_count parts.
  RankMemory(std::shared_ptr<Segment> segment, const LinkShape& shape, int local_count, int owner);

  /// Allocates it; by the owner.
  void reserve() const;

  /// First in the part, written once by the owner: whoever reads it by other means than this mapping learns
  /// that these means work.
  SegmentToken& token() const;
  RankStatus& status() const;
  /// Written by the owner before all ranks are connected.
  AccessRow& access() const;
  RegionTable& regions() const;
  /// Only where the ranks work on GPUs.
  GpuRegionTable& gpuRegions() const;

  /// The link by which the owner receives from `sender`; `peer` of the view is the caller's to set.
  LinkView link(std::uint32_t lane, int sender) const;
  /// The same for packets: two slots without headers. Only where there are at most kMaxMeshRanks.
  LinkView packets(int sender) const;

 private:
  std::size_t index(int sender) const {
    return static_cast<std::size_t>(sender < owner_ ? sender : sender - 1);
  }

  std::shared_ptr<Segment> segment_;
  std::byte* data_;
  LinkShape shape_;
  int local_count_;
  int owner_;
};

}  // namespace tutti
