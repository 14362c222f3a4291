// Regions: memory that a rank lets its peers map, as it tells them of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/core/types.h"

namespace tutti {

/// One region of a rank. Regions are numbered 1, 2, 3, ... and a number is never used again, so that a peer
/// that still knows an old one cannot take a new one for it.
struct RegionEntry {
  /// Number of the region that the entry describes; 0: none. Written by the owner: set to 0 before the other
  /// fields change, stored with release after them.
  std::atomic<std::uint32_t> number;
  std::int32_t fd;  ///< descriptor of the memory in the owner's process
  std::uint64_t bytes;
  std::array<std::uint8_t, 16> token;  ///< of the segment
};

/// The regions of one rank, in memory that all ranks map. Entry of region r: r % size. All zero at the start.
struct RegionTable {
  static constexpr std::size_t kSize = 64;
  std::array<RegionEntry, kSize> entries;

  const RegionEntry& entry(std::uint32_t number) const { return entries[number % kSize]; }
  RegionEntry& entry(std::uint32_t number) { return entries[number % kSize]; }
};

/// A region of GPU memory. Numbered like the others, in a table of its own.
struct GpuRegionEntry {
  /// Number of the region that the entry describes; 0: none. Written by the owner: set to 0 before the other
  /// fields change, stored with release after them.
  std::atomic<std::uint32_t> number;
  std::uint32_t has_ipc_handle;
  std::array<std::byte, 64> ipc_handle;  ///< of the allocation that the region lies in
  std::uint64_t address;                 ///< in the owner's process
  std::uint64_t offset;                  ///< of the region in its allocation
  std::uint64_t bytes;
  /// By the place of each rank on the host, written by that rank: number of the region that it has mapped;
  /// with kOpening set while it maps it; 0: none. Only once it is the number alone does the owner lend by it;
  /// only at 0 may the memory be freed. Sequentially consistent, and so is `number` where it is emptied: a
  /// peer says that it opens a region, then looks whether it still is there; the owner empties it, then looks
  /// who has opened it.
  std::array<std::atomic<std::uint32_t>, kMaxMeshRanks> mapped;

  static constexpr std::uint32_t kOpening = 1U << 31;
};

/// The GPU regions of one rank, in host memory that the ranks of its host map. All zero at the start.
struct GpuRegionTable {
  static constexpr std::size_t kSize = 64;
  /// Advanced by the owner after every change of the entries (release): peers look at them only then.
  std::atomic<std::uint64_t> changes;
  std::array<GpuRegionEntry, kSize> entries;

  const GpuRegionEntry& entry(std::uint32_t number) const { return entries[number % kSize]; }
  GpuRegionEntry& entry(std::uint32_t number) { return entries[number % kSize]; }
};

/// Where a buffer lies in a region of this rank that peers may map.
struct RegionPlace {
  std::uint32_t number = 0;  ///< 0: in none
  std::uint64_t offset = 0;  ///< of the buffer's first byte
};

}  // namespace tutti
