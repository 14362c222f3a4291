// How the links of a bundle lie in one piece of memory, the same for every transport that shares memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "transports/segment.h"
#include "transports/transport.h"

namespace tutti {

/// Bytes that the links of all lanes need.
std::size_t linkBytes(const LinkShape& shape);

/// Links in a shared segment. `peer` is the rank at the other end. The memory must be zero when the links are
/// new; both ends then see empty links without further set-up.
class SegmentLinks final : public LinkBundle {
 public:
  SegmentLinks(std::shared_ptr<Segment> segment, const LinkShape& shape, int peer);
  const std::vector<LinkView>& lanes() const override { return lanes_; }

 private:
  std::shared_ptr<Segment> segment_;
  std::vector<LinkView> lanes_;
};

}  // namespace tutti
