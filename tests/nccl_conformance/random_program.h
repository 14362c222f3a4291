// Random programs of NCCL calls: a value drawn from a seed, and what it must do to the memory of all ranks.
//
// Each rank has an arena of bytes, on which all calls work: what one call leaves is what a later one reads.
// So integers are whatever the bytes are, and wrap; floating-point inputs are written anew before the call,
// as small whole numbers that no order of reduction rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/nccl_conformance/calls.h"

namespace conformance {

inline constexpr std::size_t kArenaBytes = 48 << 10;

using Bytes = std::vector<std::byte>;

/// A collective, or a transfer from one rank of a communicator to another.
struct Operation {
  int comm = 0;  ///< index into RandomProgram::members
  bool is_transfer = false;
  Call call{};   ///< a collective; of a transfer, type and count
  int from = 0;  ///< transfer: ranks of the communicator
  int to = 0;
  std::size_t input = 0;  ///< where it lies in the arenas; those of one step do not overlap
  std::size_t output = 0;
  std::uint64_t seed = 0;  ///< of floating-point inputs

  std::string text() const;
};

struct Step {
  enum class Kind : std::uint8_t { operations, split, join, destroy };

  Kind kind = Kind::operations;
  std::vector<Operation> operations{};  ///< several: one group
  int depth = 0;                        ///< how many groups are open; 0: the one call stands alone
  bool is_checked = false;              ///< all arenas are looked at after it
  int comm = 0;                         ///< split: the parent; join: the new one; destroy: which
  std::vector<int> colours{};           ///< split: for each rank of the parent
  std::vector<int> keys{};
  std::vector<int> children{};  ///< split: the communicator of each colour

  std::string text() const;
};

struct RandomProgram {
  std::uint64_t seed = 0;
  int nranks = 0;
  std::vector<std::vector<int>> members{};  ///< of each communicator, in order, by rank of the first
  std::vector<Step> steps{};
};

/// `splits`: whether communicators are split; else all of them are joined by ids.
RandomProgram drawProgram(std::uint64_t seed, int nranks, bool splits);

/// A rank's arena at the start.
Bytes initialArena(std::uint64_t seed, int rank);

/// Where, in the arena of this rank of its communicator, the operation reads and writes; how much it reads.
std::size_t inputOffset(const Operation& operation, int rank, int nranks);
std::size_t outputOffset(const Operation& operation, int rank, int nranks);
std::size_t inputBytes(const Operation& operation, int rank, int nranks);

/// What a floating-point reduction finds at its input on this rank of its communicator; nothing for others,
/// and where the rank contributes nothing.
Bytes freshInput(const Operation& operation, int rank, int nranks);

/// Does what the operation must, to the arenas of all ranks: plain loops, one rank after the other.
void apply(const Operation& operation, const std::vector<int>& members, std::vector<Bytes>& arenas);

}  // namespace conformance
