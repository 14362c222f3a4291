// What a rank does to make other communicators out of one, as its line of the status board shows it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tutti {

/// The last such call of a rank; all zero: there was none.
struct Attendance {
  enum class Call : std::uint8_t { none, split, shrink };
  enum class Phase : std::uint8_t {
    over,     ///< all came, or this rank gave up
    waiting,  ///< for the others, while operations of this rank may be queued
    idle,     ///< for the others, and this rank does nothing else before they come
  };

  Call call = Call::none;
  Phase phase = Phase::over;
  std::uint16_t list = 0;    ///< of a shrink: a hash of the ranks that stay
  std::uint32_t splits = 0;  ///< number of the last split; all ranks agree on it when they have come

  bool isUnderWay() const { return phase != Phase::over; }

  /// Whether a rank that shows this has called what one that waits shows as `theirs`.
  bool hasCalled(const Attendance& theirs) const {
    if (call != theirs.call) return false;
    return call == Call::split ? splits >= theirs.splits || isUnderWay() : list == theirs.list;
  }
};
static_assert(sizeof(Attendance) == 8 && std::is_trivially_copyable_v<Attendance>);

constexpr const char* nameOf(Attendance::Call call) {
  return call == Attendance::Call::shrink ? "ncclCommShrink" : "ncclCommSplit";
}

}  // namespace tutti
