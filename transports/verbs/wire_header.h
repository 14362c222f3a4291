// A slot's header as it travels over RDMA.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/link.h"

namespace tutti {

/// In `from_region`, which receivers have no other use for: the sender waits for this slot, credit it at
/// once.
inline constexpr std::uint32_t kPromptSlot = 1;

/// Where a receiver writes a slot's result.
struct ResultPlace {
  std::uint64_t address = 0;  ///< in the sender's process
  std::uint32_t key = 0;
};

/// `kind` is inline_data, `from` the check, `to` and `to_region` the place of the result. The check covers
/// the header, and the data too where they carry checksums.
SlotHeader toWireHeader(const SlotHeader& header, const ResultPlace& result, std::span<const std::byte> data,
                        bool checksum);

/// Whether header (and data) are as they were sent.
bool isIntactWire(const SlotHeader& wire, std::span<const std::byte> data, bool checksum);

std::uint64_t resultChecksum(std::uint64_t sequence, std::span<const std::byte> result);

}  // namespace tutti
