#include "transports/rank_memory.h"

#include <utility>

namespace tutti {
namespace {

// Each part starts on a pair of cache lines.
constexpr std::size_t kAlign = 128;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

constexpr std::size_t kStatusAt = kAlign;
constexpr std::size_t kRegionsAt = kStatusAt + aligned(sizeof(RankStatus));
constexpr std::size_t kLinksAt = kRegionsAt + aligned(sizeof(RegionTable));

std::size_t headerBytes(const LinkShape& shape) { return aligned(shape.slot_count * sizeof(SlotHeader)); }

// An odd number of cache-line pairs: memory of one link must not alias that of the next in the caches.
std::size_t slotLinkBytes(const LinkShape& shape) {
  return 2 * sizeof(Counter) + headerBytes(shape) +
         aligned(std::size_t{shape.slot_count} * std::size_t{shape.slot_bytes}) + kAlign;
}

constexpr std::size_t packetLinkBytes() {
  return 2 * sizeof(Counter) + std::size_t{kPacketSlots} * kPacketLines * kPacketLineBytes;
}

}  // namespace

std::size_t RankMemory::bytes(const LinkShape& shape, int nranks) {
  const auto peers = static_cast<std::size_t>(nranks - 1);
  return kLinksAt + peers * (shape.lanes * slotLinkBytes(shape) + packetLinkBytes());
}

RankMemory::RankMemory(std::shared_ptr<Segment> segment, const LinkShape& shape, int nranks, int owner)
    : segment_(std::move(segment)), shape_(shape), nranks_(nranks), owner_(owner) {}

// All-zero bytes are valid objects of these types (implicit-lifetime structs over lock-free atomics).

SegmentToken& RankMemory::token() const { return *reinterpret_cast<SegmentToken*>(segment_->data()); }

RankStatus& RankMemory::status() const {
  return *reinterpret_cast<RankStatus*>(segment_->data() + kStatusAt);
}

RegionTable& RankMemory::regions() const {
  return *reinterpret_cast<RegionTable*>(segment_->data() + kRegionsAt);
}

LinkView RankMemory::link(std::uint32_t lane, int sender) const {
  const std::size_t before = lane * static_cast<std::size_t>(nranks_ - 1) + index(sender);
  std::byte* at = segment_->data() + kLinksAt + before * slotLinkBytes(shape_);
  LinkView view;
  view.posted = reinterpret_cast<Counter*>(at);
  view.released = view.posted + 1;
  view.headers = reinterpret_cast<SlotHeader*>(at + 2 * sizeof(Counter));
  view.data = at + 2 * sizeof(Counter) + headerBytes(shape_);
  view.slot_count = shape_.slot_count;
  view.slot_bytes = shape_.slot_bytes;
  return view;
}

LinkView RankMemory::packets(int sender) const {
  const std::size_t links = shape_.lanes * static_cast<std::size_t>(nranks_ - 1) * slotLinkBytes(shape_);
  std::byte* at = segment_->data() + kLinksAt + links + index(sender) * packetLinkBytes();
  LinkView view;
  view.posted = reinterpret_cast<Counter*>(at);
  view.released = view.posted + 1;
  view.data = at + 2 * sizeof(Counter);
  view.slot_count = kPacketSlots;
  view.slot_bytes = kPacketLines * kPacketLineBytes;
  return view;
}

}  // namespace tutti
