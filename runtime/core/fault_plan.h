// TUTTI_FAULTS, as it is written: see transports/README.md for what can be asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tutti {

/// One kind of fault, and where in the stream of all bytes that a network sends it happens.
struct Fault {
  enum class Kind { cut, corrupt, delay, stall };

  Kind kind = Kind::cut;
  std::optional<std::uint64_t> at;                ///< once, before this byte
  std::optional<std::uint64_t> every;             ///< again and again, that many bytes apart
  std::optional<std::chrono::milliseconds> time;  ///< delay; stall: without it for ever
};

struct FaultPlan {
  std::vector<Fault> faults;
  std::optional<std::uint64_t> seed;  ///< distances of `every` are random then, and right on average
};

/// Throws Error(ncclInvalidUsage), which names TUTTI_FAULTS.
FaultPlan parseFaults(std::string_view text);

}  // namespace tutti
