// What travels on a TCP link after its handshake: frames of a fixed header and a payload.
//
//   sender ─► receiver   SlotHeader (64 bytes), then its `bytes` of data     one per slot, in order
//   receiver ─► sender   CreditFrame (32 bytes), then `result_bytes`         credits, and results of slots
//
// and behind every frame one byte of padding (frame_reader.h says why).
//
// Headers always carry a check of themselves, payloads one where the links were made with checksums: what was
// garbled on its way is found before it counts. Ranks of one communicator have one byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "runtime/core/link.h"

namespace tutti {

/// What a data frame says in the field `from_region` of its header, which receivers have no other use for.
/// `from` is the checksum of the data, `to` the header's check; `kind` is always inline_data.
inline constexpr std::uint32_t kPromptFrame = 1;  ///< the sender waits for this slot: credit it at once
inline constexpr std::uint32_t kByeFrame = 2;     ///< the sender closes the link in good order; no slot

/// `header` as it travels. Looks at the data only with `checksum`.
SlotHeader toWire(const SlotHeader& header, std::span<const std::byte> data, bool checksum);

/// The frame that ends a link.
SlotHeader byeToWire(std::uint64_t sequence);

/// Whether a header arrived as it was sent.
bool isIntact(const SlotHeader& wire);

/// Where the receiver is.
struct CreditFrame {
  std::uint64_t released = 0;      ///< slots released since the link was made
  std::uint32_t result_bytes = 0;  ///< length of the result of slot released - 1, which follows; else 0
  std::uint32_t is_bye = 0;        ///< 1: the receiver closes the link in good order
  std::uint64_t checksum = 0;      ///< of the result
  std::uint64_t check = 0;         ///< of the other fields
};
static_assert(sizeof(CreditFrame) == 32 && std::is_trivially_copyable_v<CreditFrame>);

/// Fills in `check`.
CreditFrame sealed(CreditFrame frame);
bool isIntact(const CreditFrame& frame);

/// Of a payload.
std::uint64_t checksumOf(std::span<const std::byte> bytes);

}  // namespace tutti
