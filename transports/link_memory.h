// The memory of all network links of one rank: its side of each, in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/link.h"

namespace tutti {

/// Reserved at once, taken from the system page by page at first touch: a link that is never used costs
/// nothing. All-zero memory is an empty link. Throws Error where the address space does not suffice.
class LinkMemory {
 public:
  LinkMemory(std::size_t link_count, std::uint32_t slot_count, std::uint32_t slot_bytes);
  LinkMemory(const LinkMemory&) = delete;
  LinkMemory& operator=(const LinkMemory&) = delete;
  ~LinkMemory();

  /// `peer` of the view is the caller's to set.
  LinkView link(std::size_t index) const;

  /// All memory of one link.
  std::span<std::byte> bytesOf(std::size_t index) const {
    return {memory_ + index * link_bytes_, link_bytes_};
  }

  std::span<std::byte> all() const { return {memory_, bytes_}; }

 private:
  std::uint32_t slot_count_;
  std::uint32_t slot_bytes_;
  std::size_t link_bytes_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

}  // namespace tutti
