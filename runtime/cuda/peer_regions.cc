#include "runtime/cuda/peer_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transports/cuda_ipc/driver.h"

namespace tutti {

PeerRegions::PeerRegions(OpenedMemory& opened, const Allocations& allocations, const CudaLinks& links,
                         const GpuRankOptions& options)
    : opened_(opened),
      allocations_(allocations),
      links_(links),
      self_(static_cast<std::size_t>(links.place(options.self.rank))),
      table_(allocatePinned(static_cast<std::size_t>(options.nranks) * sizeof(CudaRegions), "regions")) {
  checkCuda(cudaGetDevice(&device_), "cudaGetDevice");
  // More ranks than entries have places: none of them maps anything.
  if (options.locals.size() > kMaxMeshRanks || options.regions.size() != options.locals.size()) return;
  own_ = options.regions[self_];
  peers_.resize(options.locals.size());
  for (std::size_t place = 0; place < peers_.size(); ++place) {
    peers_[place].rank = options.locals[place];
    peers_[place].published = options.regions[place];
  }
}

std::uint32_t PeerRegions::publish(const void* buffer, std::size_t bytes, std::string* note) {
  allocations_.requireInside(buffer, bytes);
  if (peers_.size() < 2) {
    *note = peers_.empty() ? "so many ranks on one host do not map each other's memory"
                           : "no other rank on this host could map it";
    return 0;
  }
  cudaPointerAttributes attributes{};
  const bool is_known = succeeded(cudaPointerGetAttributes(&attributes, buffer));
  if (!is_known || attributes.type != cudaMemoryTypeDevice || attributes.device != device_) {
    *note = "it is not memory of this rank's GPU";
    return 0;
  }
  ExportedMemory exported;
  if (!allocations_.exportMemory(buffer, &exported, note)) return 0;
  for (std::size_t tried = 0; tried < GpuRegionTable::kSize; ++tried) {
    last_number_ = last_number_ + 1 == GpuRegionEntry::kOpening ? 1 : last_number_ + 1;
    GpuRegionEntry& entry = own_->entry(last_number_);
    // Also not one that peers have not closed yet.
    if (entry.number.load(std::memory_order_relaxed) != 0 || !areClosed(last_number_)) continue;
    entry.has_ipc_handle = 1;
    entry.ipc_handle = exported.handle;
    entry.address = reinterpret_cast<std::uintptr_t>(buffer);
    entry.offset = exported.offset;
    entry.bytes = bytes;
    allocation_ids_[last_number_ % GpuRegionTable::kSize].store(allocationId(buffer),
                                                                std::memory_order_relaxed);
    entry.number.store(last_number_, std::memory_order_release);
    own_->changes.fetch_add(1, std::memory_order_release);
    return last_number_;
  }
  *note = fmt::format("no region is free: {} are in use", GpuRegionTable::kSize);
  return 0;
}

void PeerRegions::withdraw(std::uint32_t region) {
  own_->entry(region).number.store(0, std::memory_order_seq_cst);
  own_->changes.fetch_add(1, std::memory_order_release);
}

bool PeerRegions::areClosed(std::uint32_t region) const {
  return std::ranges::all_of(own_->entry(region).mapped,
                             [](const auto& mapped) { return mapped.load(std::memory_order_seq_cst) == 0; });
}

bool PeerRegions::isStillIn(std::uint32_t region, const void* address) const {
  const auto& id = allocation_ids_[region % GpuRegionTable::kSize];
  return allocationId(address) == id.load(std::memory_order_relaxed);
}

bool PeerRegions::hasNews() const {
  return std::ranges::any_of(peers_, [this](const Peer& peer) {
    return links_.reach(peer.rank) == CudaLinks::Reach::ipc &&
           peer.published->changes.load(std::memory_order_acquire) != peer.seen;
  });
}

void PeerRegions::meet(bool is_idle) {
  for (Peer& peer : peers_) {
    if (links_.reach(peer.rank) == CudaLinks::Reach::ipc) meetPeer(peer, is_idle);
  }
}

void PeerRegions::meetPeer(Peer& peer, bool is_idle) {
  const std::uint64_t changes = peer.published->changes.load(std::memory_order_acquire);
  if (changes == peer.seen) return;
  bool is_complete = true;
  for (std::size_t slot = 0; slot < GpuRegionTable::kSize; ++slot) {
    GpuRegionEntry& entry = peer.published->entries[slot];
    const std::uint32_t number = entry.number.load(std::memory_order_acquire);
    const Mapped& mapped = peer.mapped[slot];
    if (number == mapped.number) continue;
    if (mapped.mapping != nullptr && !is_idle) {
      is_complete = false;
      continue;
    }
    unmap(peer, slot);
    if (number != 0) map(peer, entry, number);
  }
  if (is_complete) peer.seen = changes;
}

void PeerRegions::map(Peer& peer, GpuRegionEntry& entry, std::uint32_t number) {
  const std::size_t slot = number % GpuRegionTable::kSize;
  Mapped& mapped = peer.mapped[slot];
  mapped.number = number;
  // From here on the owner keeps the memory until we close it, unless it emptied the entry before.
  entry.mapped[self_].store(number | GpuRegionEntry::kOpening, std::memory_order_seq_cst);
  std::string reason;
  if (entry.number.load(std::memory_order_seq_cst) == number && entry.has_ipc_handle != 0) {
    mapped.mapping = opened_.open(device_, entry.ipc_handle, &reason);
  }
  if (mapped.mapping == nullptr) {
    entry.mapped[self_].store(0, std::memory_order_seq_cst);
    return;
  }
  CudaRegion& seen = table()[peer.rank].entries[slot];
  seen.base = mapped.mapping.get() + entry.offset;
  seen.bytes = entry.bytes;
  seen.number.store(number, std::memory_order_release);
  entry.mapped[self_].store(number, std::memory_order_seq_cst);
}

void PeerRegions::unmap(Peer& peer, std::size_t slot) {
  Mapped& mapped = peer.mapped[slot];
  if (mapped.mapping != nullptr) {
    table()[peer.rank].entries[slot].number.store(0, std::memory_order_release);
    mapped.mapping.reset();
    peer.published->entries[slot].mapped[self_].store(0, std::memory_order_seq_cst);
  }
  mapped.number = 0;
}

void PeerRegions::close() {
  for (Peer& peer : peers_) {
    for (std::size_t slot = 0; slot < GpuRegionTable::kSize; ++slot) unmap(peer, slot);
  }
}

bool PeerRegions::hasMapped(int place, const RegionPlace& region) const {
  const auto at = static_cast<std::size_t>(place);
  return region.number == 0 ||
         own_->entry(region.number).mapped[at].load(std::memory_order_acquire) == region.number;
}

PeerRegions::Loans PeerRegions::loansOf(const GpuTask& task) const {
  Loans loans;
  if (!task.may_lend) return loans;
  const auto is_shareable = [this](const void* buffer, const RegionPlace& region) {
    return buffer == nullptr || region.number != 0 || allocations_.isShareable(buffer);
  };
  const bool is_in_regions = task.input_region.number != 0 || task.output_region.number != 0;
  for (std::size_t place = 0; place < peers_.size(); ++place) {
    const int rank = peers_[place].rank;
    if (rank >= 64) continue;
    const std::uint64_t bit = std::uint64_t{1} << rank;
    switch (links_.reach(rank)) {
      case CudaLinks::Reach::none:
        break;
      case CudaLinks::Reach::same_gpu:
        loans.by_address |= bit;
        break;
      case CudaLinks::Reach::same_process:
        if (is_shareable(task.send, task.input_region) && is_shareable(task.recv, task.output_region)) {
          loans.by_address |= bit;
        }
        break;
      case CudaLinks::Reach::ipc:
        if (is_in_regions && hasMapped(static_cast<int>(place), task.input_region) &&
            hasMapped(static_cast<int>(place), task.output_region)) {
          loans.by_region |= bit;
        }
        break;
    }
  }
  return loans;
}

}  // namespace tutti
