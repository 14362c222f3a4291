#include "transports/link_memory.h"

#include <utility>

namespace tutti {
namespace {

// Per lane: posted, released, headers, slots; each part starts on a cache-line pair.
constexpr std::size_t kAlign = 128;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::size_t headerBytes(const LinkShape& shape) { return aligned(shape.slot_count * sizeof(SlotHeader)); }

std::size_t laneBytes(const LinkShape& shape) {
  return 2 * sizeof(Counter) + headerBytes(shape) +
         aligned(std::size_t{shape.slot_count} * std::size_t{shape.slot_bytes});
}

}  // namespace

std::size_t linkBytes(const LinkShape& shape) { return shape.lanes * laneBytes(shape); }

SegmentLinks::SegmentLinks(std::shared_ptr<Segment> segment, const LinkShape& shape, int peer)
    : segment_(std::move(segment)) {
  for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
    std::byte* at = segment_->data() + lane * laneBytes(shape);
    // All-zero bytes are valid objects of these types (implicit-lifetime structs over lock-free atomics).
    LinkView view;
    view.posted = reinterpret_cast<Counter*>(at);
    view.released = view.posted + 1;
    view.headers = reinterpret_cast<SlotHeader*>(at + 2 * sizeof(Counter));
    view.data = at + 2 * sizeof(Counter) + headerBytes(shape);
    view.slot_count = shape.slot_count;
    view.slot_bytes = shape.slot_bytes;
    view.peer = peer;
    lanes_.push_back(view);
  }
}

}  // namespace tutti
