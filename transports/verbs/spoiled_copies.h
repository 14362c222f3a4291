// For tests: slots that are altered on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/faulty/faulty_slots.h"
#include "transports/verbs/memory.h"
#include "transports/verbs/queue_pairs.h"

namespace tutti {

/// What a device is to read in place of slots on which a fault falls: a copy with one bit turned over.
/// Neither the ring nor memory of the user is touched, so what is sent again is right. Of one connection of a
/// link.
class SpoiledCopies {
 public:
  /// `faults`: nullptr for none; then this costs nothing. Throws Error.
  SpoiledCopies(FaultySlots* faults, const std::shared_ptr<VerbsDevice>& device, std::uint32_t slot_count,
                std::uint32_t slot_bytes)
      : faults_(faults), slot_bytes_(slot_bytes) {
    if (faults == nullptr) return;
    copies_.resize(std::size_t{slot_count} * slot_bytes);
    memory_ = std::make_unique<RegisteredMemory>(device, copies_);
  }

  /// `what` is at slot `place`; until its credit, or that of its result, nothing else is.
  ibv_sge spoil(std::uint64_t place, const ibv_sge& what);

 private:
  FaultySlots* faults_;
  std::uint32_t slot_bytes_;
  std::vector<std::byte> copies_;
  std::unique_ptr<RegisteredMemory> memory_;
};

}  // namespace tutti
