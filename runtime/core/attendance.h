// What a rank does to make other communicators out of one, as its line of the status board shows it.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "runtime/core/types.h"

namespace tutti {

/// Some ranks of a communicator: a bit for each.
struct RankSet {
  std::array<std::uint64_t, (kMaxRanks + 63) / 64> words{};

  void add(int rank) { words[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64); }
  bool contains(int rank) const {
    return (words[static_cast<std::size_t>(rank) / 64] >> (rank % 64) & 1) != 0;
  }
  bool operator==(const RankSet&) const = default;
  bool operator<(const RankSet& other) const { return words < other.words; }

  /// Equal for equal sets: FNV-1a, folded.
  std::uint16_t hash() const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint64_t word : words) hash = (hash ^ word ^ (word >> 32)) * 0x100000001b3;
    return static_cast<std::uint16_t>(hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48));
  }
};

/// The last such call of a rank; all zero: there was none.
struct Attendance {
  enum class Call : std::uint8_t { none, split, shrink };
  enum class Phase : std::uint8_t {
    over,     ///< all came, or this rank gave up
    waiting,  ///< for the others, while operations of this rank may be queued
    idle,     ///< for the others, and this rank does nothing else before they come
    refused,  ///< this rank gave up, because another one that it waited for called something else
  };

  Call call = Call::none;
  Phase phase = Phase::over;
  std::uint16_t list = 0;    ///< of a shrink: a hash of the ranks that are left out
  std::uint32_t splits = 0;  ///< number of the last split; all ranks agree on it when they have come

  bool isUnderWay() const { return phase == Phase::waiting || phase == Phase::idle; }

  bool operator==(const Attendance&) const = default;

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
