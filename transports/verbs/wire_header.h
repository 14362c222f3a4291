// A slot's header as it travels over RDMA.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/core/link.h"

namespace tutti {

/// Bits of `from_region`, which receivers have no other use for.
inline constexpr std::uint32_t kPromptSlot = 1;     ///< the sender waits for this slot: credit it at once
inline constexpr std::uint32_t kResultInPlace = 2;  ///< `to` and `to_region` say where its result is to go

/// The immediate of a slot: the lower bits of its sequence; and this, where header and data came as one
/// write.
inline constexpr std::uint32_t kTogether = 1U << 31;

/// Each slot of a ring has room for its header in front of the data, on both sides: there the header travels
/// where both are one write, whose data the sender's device gathers from wherever they are.
inline constexpr std::uint32_t kHeaderRoom = sizeof(SlotHeader);

/// Slots of at most so many bytes are one write. In larger ones a second request counts for little, and data
/// behind a header begin in the middle of a packet.
inline constexpr std::uint32_t kTogetherBytes = 16 << 10;

/// Headers and data of at most so many bytes go into the request itself: the device need not read them.
inline constexpr std::uint32_t kInlineBytes = 128;

/// Memory of the user, registered, into which the receiver's device writes a slot's result.
struct ResultPlace {
  std::uint64_t address = 0;  ///< in the sender's process
  std::uint32_t key = 0;
};

/// `kind` is inline_data, `from` the check. The check covers the header, and the data too where they carry
/// checksums. Without a place of its own a result goes back into the slot.
SlotHeader toWireHeader(const SlotHeader& header, const std::optional<ResultPlace>& result,
                        std::span<const std::byte> data, bool checksum);

/// Whether header (and data) are as they were sent.
bool isIntactWire(const SlotHeader& wire, std::span<const std::byte> data, bool checksum);

/// Of a slot's result. Where data carry checksums, the receiver writes it into `from` of the sender's header,
/// with the credit: by then the header has served its purpose for sending.
std::uint64_t resultChecksum(std::uint64_t sequence, std::span<const std::byte> result);

}  // namespace tutti
