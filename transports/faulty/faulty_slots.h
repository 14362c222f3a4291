// Bits that turn over in slots which a device moves, for tests: `corrupt` of TUTTI_FAULTS where there are no
// sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace tutti {

/// Counts the bytes that a rank hands to its devices on all links together. The other faults of the plan are
/// for sockets, and nothing here. Used by one thread at a time.
class FaultySlots {
 public:
  /// Throws Error(ncclInvalidUsage), which names TUTTI_FAULTS.
  explicit FaultySlots(std::string_view faults);

  bool isNone() const { return faults_.empty(); }

  /// `bytes` are to be sent next; which of them, if any, is altered on its way.
  std::optional<std::size_t> next(std::size_t bytes);

 private:
  struct Active {
    std::uint64_t next;                  ///< position of the next one
    std::optional<std::uint64_t> every;  ///< again, that far apart
  };

  std::optional<std::mt19937_64> random_;
  std::vector<Active> faults_;
  std::uint64_t position_ = 0;  ///< bytes sent so far
};

}  // namespace tutti
