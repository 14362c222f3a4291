// A link: one way, one lane, two ranks. A ring of slots with a header each, and two counters.
//
// Memory order and ownership, the same for every transport:
//   posted    written by the sender (release) after it has written slot and header; read by the receiver
//             (acquire). Slot s % slot_count belongs to the receiver while posted > s >= released.
//   released  written by the receiver (release) after its last read of the slot; read by the sender
//   (acquire).
// Both count slots since the link was made, never wrap, are never reset, and have exactly one writer. Hence
//   released <= posted <= released + slot_count                                        (the link invariant)
// What a slot refers to, and does not hold, is the sender's again once `released` has passed the slot. A
// sender whose operation fails may not wait for that: the receiver may have failed, too. So
//   borrowed  is 1 while the receiver works on memory of the sender: it stores that, and then goes on only if
//             the sender's line of the status board shows no failure;
// and the sender shows its failure first, and then waits until `borrowed` is 0. All four sequentially
// consistent: one of the two sees the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/core/descriptor.h"

namespace tutti {

/// A 64-bit counter alone on two cache lines (adjacent-line prefetch fetches pairs). May lie in shared
/// memory.
struct alignas(128) Counter {
  std::atomic<std::uint64_t> value{0};
  std::atomic<std::uint64_t> borrowed{0};  ///< of `released`, which has the same writer
};
static_assert(sizeof(Counter) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// How a slot carries its data.
enum class SlotKind : std::uint16_t {
  inline_data = 0,  ///< the bytes are in the slot
  region = 1,       ///< the bytes stay in a region of the sender until the slot is released; see region.h
  address = 2,      ///< the same, in memory of the sender's process that is no region
};

/// Precedes every slot. Written by the sender before `posted` is advanced, read by the receiver after.
struct SlotHeader {
  std::uint64_t sequence = 0;  ///< the value of `posted` before this slot: 0, 1, 2, ...
  Descriptor descriptor = {};  ///< of the operation that the slot belongs to
  SlotKind kind = SlotKind::inline_data;
  std::uint16_t returns = 0;  ///< 1: the receiver leaves a result of the same length; inline: in the slot
  std::uint32_t bytes = 0;    ///< length of the data
  /// Reference: where the data is and where the result belongs, as offsets into the regions or as addresses.
  /// Inline: `from` is the data's checksum on links whose medium may corrupt it, else 0; `to` is the first
  /// element of the result in the sender's output, for the sender itself.
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint32_t from_region = 0;
  std::uint32_t to_region = 0;
  std::uint64_t scale = 0;  ///< what the sender's own contribution is multiplied by, where operations scale
};
static_assert(sizeof(SlotHeader) == 64 && std::is_trivially_copyable_v<SlotHeader>);

/// Packet links carry small messages without headers: data and flag travel in one store. Their slots are
/// lines of 64 bytes; see kernels/host/packets.h. Links of the two directions between a pair of ranks work
/// together, in programs in which every pair exchanges both ways: having received packet slot k from a peer,
/// a rank knows that the peer has read slot k - 1 that it sent. So two slots need no acknowledgements.
/// `posted` and `released` are each used by their writer only.
inline constexpr std::uint32_t kPacketLineBytes = 64;
inline constexpr std::uint32_t kPacketLines = 128;  ///< per slot
inline constexpr std::uint32_t kPacketSlots = 2;
/// Data bytes of a packet slot as GPUs write it: in stores of 8 bytes, of which 4 are data and 4 the flag.
inline constexpr std::uint32_t kGpuPacketSlotBytes = kPacketLines * kPacketLineBytes / 2;

/// What executors see of a link: where things are. Copied freely; whoever made the link keeps it alive.
struct LinkView {
  Counter* posted = nullptr;
  Counter* released = nullptr;
  SlotHeader* headers = nullptr;  ///< slot_count of them; packet links have none
  std::byte* data = nullptr;      ///< slot_count * slot_bytes
  std::uint32_t slot_count = 0;
  std::uint32_t slot_bytes = 0;
  std::int32_t peer = -1;   ///< the rank at the other end
  bool is_network = false;  ///< this rank's side of a link whose other side is moved by Progress

  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): links that are used have slots
  constexpr SlotHeader& header(std::uint64_t sequence) const { return headers[sequence % slot_count]; }
  constexpr std::byte* slot(std::uint64_t sequence) const {
    return data + sequence % slot_count * std::uint64_t{slot_bytes};
  }
};
static_assert(std::is_trivially_copyable_v<LinkView>);

}  // namespace tutti
