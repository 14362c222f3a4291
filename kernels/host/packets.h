// Packets on the host: small messages whose data and flag travel in one store, so that nobody waits for an
// acknowledgement and no counter is read.
//
// A packet slot is a row of 64-byte lines. Two forms, one per machine:
//   quarters  four stores of 16 bytes: 12 of data, 4 of flag. Aligned 16-byte accesses are atomic on
//   processors
//             with AVX (Intel SDM 3A 9.1.1, AMD APM 2 7.3.2). Where AVX-512 writes whole lines, that is only
//             the fast way: each quarter still has its own flag.
//   eighths   eight stores of 8 bytes: 4 of data, 4 of flag. Elsewhere, and under ThreadSanitizer, which
//   knows
//             no 16-byte atomics.
//
// The flag is the sequence number of the slot and some bits of the operation's descriptor; it is never 0,
// which is what unused memory holds. It repeats after kPacketFlagPeriod slots; a line that a long message
// wrote and short ones never touched since could then be taken for new. So the slots whose number is near a
// multiple of half the period are written whole.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/descriptor.h"

namespace tutti {

/// Slots after which a flag repeats.
inline constexpr std::uint64_t kPacketFlagPeriod = 1 << 20;

/// Data bytes of a slot in this machine's form.
std::uint32_t packetSlotBytes();

/// The flag of slot number `sequence` of an operation.
std::uint32_t packetFlag(std::uint64_t sequence, const Descriptor& descriptor);

/// Writes a message of `bytes` into slot number `sequence`; at least one line, and all of them where the
/// flag's period asks for it.
void writePackets(std::byte* slot, std::uint64_t sequence, std::uint32_t flag, const std::byte* data,
                  std::size_t bytes);

/// Reads as much of a message of `bytes` as has arrived, from line `first` on; returns the first line that
/// has not. `to` has room for whole lines: packetRoom(bytes).
std::size_t readPackets(std::byte* to, const std::byte* slot, std::uint32_t flag, std::size_t bytes,
                        std::size_t first);

/// Lines of a message of `bytes`, at least 1.
std::size_t packetLines(std::size_t bytes);
/// Bytes that readPackets may write for a message of `bytes`.
std::size_t packetRoom(std::size_t bytes);

}  // namespace tutti
