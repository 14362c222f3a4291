// Packets on the GPU: 8 bytes in one store, of which 4 are data and 4 the flag. The rules are those of the
// host (kernels/host/packets.h): a flag is never 0, and slots near a multiple of half its period are written
// whole.
//
// Two packets go in one access of 16 bytes. Each has its flag, so the access need not be one: PTX promises
// that of the halves of a vector. A scalar of 128 bits (.b128) is the same access on the wire, but would have
// no advantage but a flag for 12 bytes instead of one for 4, which fits no element of 8.
//
// Stores and loads are relaxed: a packet is one word, so whoever reads a flag has the data that came with it,
// and what was read with the right flag is never read again. That a slot is free needs no order either: it
// was read before its reader could send the packet that says so.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "kernels/cuda/memory_order.cuh"
#include "runtime/core/descriptor.h"
#include "runtime/core/link.h"

namespace tutti {

inline constexpr std::uint64_t kCudaPacketFlagPeriod = 1 << 20;
inline constexpr std::uint32_t kCudaPacketPairs = kGpuPacketSlotBytes / 8;  ///< of a slot

/// The flag of slot number `sequence` of an operation: 11 bits of the descriptor, 20 of the sequence, and
/// a 1.
constexpr std::uint32_t cudaPacketFlag(std::uint64_t sequence, const Descriptor& descriptor) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(descriptor);
  std::uint64_t mixed = (words[0] ^ (words[1] * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
  mixed ^= mixed >> 32;
  return static_cast<std::uint32_t>(mixed << 21 | sequence % kCudaPacketFlagPeriod << 1 | 1U);
}

/// Whether every packet of the slot is to be written, however short the message.
constexpr bool writesWholeSlot(std::uint64_t sequence) {
  return sequence % (kCudaPacketFlagPeriod / 2) < kPacketSlots;
}

__device__ inline void writePackets(std::uint64_t slot, std::uint32_t pair, std::uint64_t data,
                                    std::uint32_t flag) {
  const std::uint64_t flag_word = std::uint64_t{flag} << 32;
  storeRelaxedPair(slot + std::uint64_t{pair} * 16,
                   {flag_word | (data & 0xffffffffU), flag_word | data >> 32});
}

/// Whether both packets have arrived; then `data` is what they carry.
__device__ inline bool readPackets(std::uint64_t slot, std::uint32_t pair, std::uint32_t flag,
                                   std::uint64_t& data) {
  const ulonglong2 packets = loadRelaxedPair(slot + std::uint64_t{pair} * 16);
  data = packets.y << 32 | (packets.x & 0xffffffffU);
  return packets.x >> 32 == flag && packets.y >> 32 == flag;
}

}  // namespace tutti
