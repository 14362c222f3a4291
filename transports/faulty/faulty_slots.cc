#include "transports/faulty/faulty_slots.h"

#include <limits>

#include "transports/faulty/faulty_wire.h"

namespace tutti {

FaultySlots::FaultySlots(std::string_view faults) {
  const FaultPlan plan = parseFaults(faults);
  if (plan.seed) random_.emplace(*plan.seed);
  for (const Fault& fault : plan.faults) {
    if (fault.kind != Fault::Kind::corrupt) continue;
    const std::uint64_t first =
        fault.at ? *fault.at : faultDistance(*fault.every, random_ ? &*random_ : nullptr);
    faults_.push_back({.next = first, .every = fault.every});
  }
}

std::optional<std::size_t> FaultySlots::next(std::size_t bytes) {
  std::optional<std::size_t> altered;
  const std::uint64_t end = position_ + bytes;
  for (Active& active : faults_) {
    if (active.next < position_ || active.next >= end) continue;
    altered = active.next - position_;
    if (!active.every) active.next = std::numeric_limits<std::uint64_t>::max();
    // Several that fall on one slot are one.
    while (active.every && active.next < end)
      active.next += faultDistance(*active.every, random_ ? &*random_ : nullptr);
  }
  position_ = end;
  return altered;
}

}  // namespace tutti
