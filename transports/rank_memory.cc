#include "transports/rank_memory.h"

#include <utility>

namespace tutti {
namespace {

// Each part starts on a pair of cache lines.
constexpr std::size_t kAlign = 128;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

constexpr std::size_t kStatusAt = kAlign;
constexpr std::size_t kAccessAt = kStatusAt + aligned(sizeof(RankStatus));
constexpr std::size_t kRegionsAt = kAccessAt + aligned(sizeof(RankMemory::AccessRow));
constexpr std::size_t kLinksAt = kRegionsAt + aligned(sizeof(RegionTable));

std::size_t headerBytes(const LinkShape& shape) { return aligned(shape.slot_count * sizeof(SlotHeader)); }

// An odd number of cache-line pairs: memory of one link must not alias that of the next in the caches.
std::size_t slotLinkBytes(const LinkShape& shape) {
  return 2 * sizeof(Counter) + headerBytes(shape) +
         aligned(std::size_t{shape.slot_count} * std::size_t{shape.slot_bytes}) + kAlign;
}

constexpr std::size_t packetLinkBytes(int local_count) {
  if (local_count > kMaxMeshRanks) return 0;
  return 2 * sizeof(Counter) + std::size_t{kPacketSlots} * kPacketLines * kPacketLineBytes;
}

/// Where the links end and the GPU regions begin.
std::size_t linksEnd(const LinkShape& shape, int local_count) {
  const auto peers = static_cast<std::size_t>(local_count - 1);
  return kLinksAt + peers * (shape.lanes * slotLinkBytes(shape) + packetLinkBytes(local_count));
}

}  // namespace

std::size_t RankMemory::bytes(const LinkShape& shape, int local_count) {
  constexpr std::size_t kPageBytes = 4096;
  const std::size_t need =
      linksEnd(shape, local_count) + (shape.on_gpu ? aligned(sizeof(GpuRegionTable)) : 0);
  return (need + kPageBytes - 1) / kPageBytes * kPageBytes;
}

RankMemory::RankMemory(std::shared_ptr<Segment> segment, const LinkShape& shape, int local_count, int owner)
    : segment_(std::move(segment)),
      data_(segment_->data() + static_cast<std::size_t>(owner) * bytes(shape, local_count)),
      shape_(shape),
      local_count_(local_count),
      owner_(owner) {}

void RankMemory::reserve() const {
  segment_->reserve(static_cast<std::size_t>(data_ - segment_->data()), bytes(shape_, local_count_));
}

// All-zero bytes are valid objects of these types (implicit-lifetime structs over lock-free atomics).

SegmentToken& RankMemory::token() const { return *reinterpret_cast<SegmentToken*>(data_); }

RankStatus& RankMemory::status() const { return *reinterpret_cast<RankStatus*>(data_ + kStatusAt); }

RankMemory::AccessRow& RankMemory::access() const { return *reinterpret_cast<AccessRow*>(data_ + kAccessAt); }

RegionTable& RankMemory::regions() const { return *reinterpret_cast<RegionTable*>(data_ + kRegionsAt); }

GpuRegionTable& RankMemory::gpuRegions() const {
  return *reinterpret_cast<GpuRegionTable*>(data_ + linksEnd(shape_, local_count_));
}

LinkView RankMemory::link(std::uint32_t lane, int sender) const {
  const std::size_t before = lane * static_cast<std::size_t>(local_count_ - 1) + index(sender);
  std::byte* at = data_ + kLinksAt + before * slotLinkBytes(shape_);
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
  const std::size_t links = shape_.lanes * static_cast<std::size_t>(local_count_ - 1) * slotLinkBytes(shape_);
  std::byte* at = data_ + kLinksAt + links + index(sender) * packetLinkBytes(local_count_);
  LinkView view;
  view.posted = reinterpret_cast<Counter*>(at);
  view.released = view.posted + 1;
  view.data = at + 2 * sizeof(Counter);
  view.slot_count = kPacketSlots;
  view.slot_bytes = kPacketLines * kPacketLineBytes;
  return view;
}

}  // namespace tutti
