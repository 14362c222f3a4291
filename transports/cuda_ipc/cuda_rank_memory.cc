#include "transports/cuda_ipc/cuda_rank_memory.h"

namespace tutti {
namespace {

constexpr std::size_t kAlign = 128;
// Smaller allocations share a block of this size with others, and peers map all of it.
constexpr std::size_t kGranularity = std::size_t{2} << 20;

constexpr std::size_t aligned(std::size_t bytes, std::size_t to = kAlign) {
  return (bytes + to - 1) / to * to;
}

// The owner's mark, its scratch place, and one mark of each rank of the host.
std::size_t markBytes(int local_count) {
  return aligned((2 + static_cast<std::size_t>(local_count)) * sizeof(CudaMark));
}

std::size_t headerBytes(const LinkShape& shape) { return aligned(shape.slot_count * sizeof(SlotHeader)); }

// First the credits of the link to the peer, then all of the link from it.
std::size_t linkBytes(const LinkShape& shape) {
  return 2 * sizeof(Counter) + headerBytes(shape) +
         aligned(std::size_t{shape.slot_count} * std::size_t{shape.slot_bytes});
}

// The counters of packet links are used by their writer only, and lie with it: first that of the link to the
// peer, then that of the link from it.
std::size_t packetBytes(int local_count) {
  if (local_count > kMaxMeshRanks) return 0;
  return 2 * sizeof(Counter) + std::size_t{kPacketSlots} * kPacketLines * kPacketLineBytes;
}

Counter* counter(std::byte* part, int number) { return reinterpret_cast<Counter*>(part) + number; }

}  // namespace

std::size_t CudaRankMemory::bytes(const LinkShape& shape, int local_count) {
  const auto peers = static_cast<std::size_t>(local_count - 1);
  const std::size_t links = peers * (shape.lanes * linkBytes(shape) + packetBytes(local_count));
  return aligned(markBytes(local_count) + links, kGranularity);
}

CudaRankMemory::CudaRankMemory(std::byte* base, const LinkShape& shape, int local_count, int owner)
    : base_(base), shape_(shape), local_count_(local_count), owner_(owner) {}

std::byte* CudaRankMemory::linkPart(std::uint32_t lane, int peer) const {
  const std::size_t before = lane * static_cast<std::size_t>(local_count_ - 1) + index(peer);
  return base_ + markBytes(local_count_) + before * linkBytes(shape_);
}

std::byte* CudaRankMemory::packetPart(int peer) const {
  const std::size_t links = shape_.lanes * static_cast<std::size_t>(local_count_ - 1) * linkBytes(shape_);
  return base_ + markBytes(local_count_) + links + index(peer) * packetBytes(local_count_);
}

LinkView CudaRankMemory::link(const CudaRankMemory& receiver, const CudaRankMemory& sender,
                              std::uint32_t lane) {
  std::byte* at = receiver.linkPart(lane, sender.owner_);
  LinkView view;
  view.posted = counter(at, 1);
  view.released = counter(sender.linkPart(lane, receiver.owner_), 0);
  view.headers = reinterpret_cast<SlotHeader*>(at + 2 * sizeof(Counter));
  view.data = at + 2 * sizeof(Counter) + headerBytes(receiver.shape_);
  view.slot_count = receiver.shape_.slot_count;
  view.slot_bytes = receiver.shape_.slot_bytes;
  return view;
}

LinkView CudaRankMemory::packets(const CudaRankMemory& receiver, const CudaRankMemory& sender) {
  std::byte* at = receiver.packetPart(sender.owner_);
  LinkView view;
  view.posted = counter(sender.packetPart(receiver.owner_), 0);
  view.released = counter(at, 1);
  view.data = at + 2 * sizeof(Counter);
  view.slot_count = kPacketSlots;
  view.slot_bytes = kPacketLines * kPacketLineBytes;
  return view;
}

}  // namespace tutti
