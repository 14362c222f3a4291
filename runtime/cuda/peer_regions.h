// Regions of GPU memory: what a rank lets its peers map, and what it has mapped of them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_work.h"
#include "runtime/core/accelerator.h"
#include "runtime/core/region.h"
#include "transports/cuda_ipc/allocations.h"
#include "transports/cuda_ipc/cuda_call.h"
#include "transports/cuda_ipc/cuda_links.h"
#include "transports/cuda_ipc/opened_memory.h"

namespace tutti {

/// The regions of one rank. Used by one thread at a time, with the rank's device current, except where noted.
/// Throws Error where CUDA's memory for the table cannot be had, and where noted.
class PeerRegions {
 public:
  PeerRegions(OpenedMemory& opened, const Allocations& allocations, const CudaLinks& links,
              const GpuRankOptions& options);
  PeerRegions(const PeerRegions&) = delete;
  PeerRegions& operator=(const PeerRegions&) = delete;

  /// See GpuRank::publish. Throws Error(ncclInvalidArgument) for bytes beyond the allocation.
  std::uint32_t publish(const void* buffer, std::size_t bytes, std::string* note);
  /// The peers learn that the region is gone. Its memory may be freed once areClosed().
  void withdraw(std::uint32_t region);
  /// Whether no peer has the region mapped. Any thread.
  bool areClosed(std::uint32_t region) const;

  /// See GpuRank::isStillIn. Any thread.
  bool isStillIn(std::uint32_t region, const void* address) const;

  /// Whether peers have published or withdrawn regions since meet().
  bool hasNews() const;
  /// Maps what peers have published; closes what they withdrew, if no kernel of the rank runs (`is_idle`),
  /// because that may wait for the GPU.
  void meet(bool is_idle);
  /// Closes all that was mapped.
  void close();
  /// After a reset of the device, which has ended what is CUDA's.
  void abandon() noexcept { table_.get_deleter().is_registered = false; }

  /// The peers of rank < 64 that work in place on what a task lends by address, and by region.
  struct Loans {
    std::uint64_t by_address = 0;
    std::uint64_t by_region = 0;
  };
  Loans loansOf(const GpuTask& task) const;

  /// Per rank, for kernels.
  CudaRegions* table() const { return reinterpret_cast<CudaRegions*>(table_.get()); }

 private:
  struct Mapped {
    std::uint32_t number = 0;  ///< also of what could not be mapped, which is not tried again
    OpenedMemory::Mapping mapping;
  };
  struct Peer {
    int rank = -1;
    GpuRegionTable* published = nullptr;
    std::uint64_t seen = 0;  ///< of published->changes
    std::array<Mapped, GpuRegionTable::kSize> mapped;
  };
  void meetPeer(Peer& peer, bool is_idle);
  void map(Peer& peer, GpuRegionEntry& entry, std::uint32_t number);
  void unmap(Peer& peer, std::size_t slot);
  bool hasMapped(int place, const RegionPlace& region) const;

  OpenedMemory& opened_;
  const Allocations& allocations_;
  const CudaLinks& links_;
  int device_ = -1;
  std::size_t self_;  ///< this rank's place on its host
  GpuRegionTable* own_ = nullptr;
  std::uint32_t last_number_ = 0;
  std::array<std::atomic<std::uint64_t>, GpuRegionTable::kSize>
      allocation_ids_{};     ///< of this rank's regions
  std::vector<Peer> peers_;  ///< by place; this rank's own is unused
  OwnedPinnedMemory<std::byte> table_;
};

}  // namespace tutti
