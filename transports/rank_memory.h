// What one rank shows to all others, in one segment that it owns and every other rank maps:
//
//   token │ status line │ regions │ links that it receives by: for each lane and peer │ packet links: for
//   each peer
//
// The receiver of a link owns its memory. All-zero memory is a rank that has done nothing yet and links that
// are empty, so nothing has to be initialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/region.h"
#include "transports/segment.h"

namespace tutti {

class RankMemory {
 public:
  /// Bytes of one rank's segment.
  static std::size_t bytes(const LinkShape& shape, int nranks);

  /// `owner`: the rank whose memory it is. The segment has bytes(shape, nranks) bytes.
  RankMemory(std::shared_ptr<Segment> segment, const LinkShape& shape, int nranks, int owner);

  /// First in the segment, written once by the owner: whoever reads it by other means than this mapping
  /// learns that these means work.
  SegmentToken& token() const;
  RankStatus& status() const;
  RegionTable& regions() const;

  /// The link by which the owner receives from `sender`; `peer` of the view is the caller's to set.
  LinkView link(std::uint32_t lane, int sender) const;
  /// The same for packets: two slots without headers.
  LinkView packets(int sender) const;

 private:
  std::size_t index(int sender) const {
    return static_cast<std::size_t>(sender < owner_ ? sender : sender - 1);
  }

  std::shared_ptr<Segment> segment_;
  LinkShape shape_;
  int nranks_;
  int owner_;
};

}  // namespace tutti
