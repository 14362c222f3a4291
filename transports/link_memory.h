// The memory of all network links of one rank: its side of each, in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/core/link.h"

namespace tutti {

/// Reserved at once, taken from the system page by page at first touch: a link that is never used costs
/// nothing. All-zero memory is an empty link. Throws Error where the address space does not suffice.
class LinkMemory {
 public:
  /// `slots`: where the data of slots are to lie, slotsBytes() of them; nullptr: here, behind the headers.
  LinkMemory(std::size_t link_count, std::uint32_t slot_count, std::uint32_t slot_bytes,
             std::shared_ptr<std::byte> slots = nullptr);
  LinkMemory(const LinkMemory&) = delete;
  LinkMemory& operator=(const LinkMemory&) = delete;
  ~LinkMemory();

  /// Of the data of all slots.
  static std::size_t slotsBytes(std::size_t link_count, std::uint32_t slot_count, std::uint32_t slot_bytes);

  /// `peer` of the view is the caller's to set.
  LinkView link(std::size_t index) const;

  /// All memory of one link, but for slots that lie elsewhere.
  std::span<std::byte> bytesOf(std::size_t index) const {
    return {memory_ + index * link_bytes_, link_bytes_};
  }

  std::span<std::byte> all() const { return {memory_, bytes_}; }

 private:
  std::shared_ptr<std::byte> slots_;
  std::uint32_t slot_count_;
  std::uint32_t slot_bytes_;
  std::size_t link_bytes_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

}  // namespace tutti
