// After every step: are all replicas bit-identical?
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/replica_hash.h"
#include "tools/train/world.h"

namespace tutti::train {

struct ReplicaDifference {
  std::size_t rank = 0;
  std::size_t reference = 0;
  std::size_t differing = 0;  ///< ranks that differ from the reference
  std::string tensor;         ///< the first one that differs between the two
};

/// What a rank tells the others of its step, besides the hash of its state.
struct RankReport {
  std::uint64_t gradient_hash = 0;
  double loss = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t network_bytes = 0;  ///< of them, to other hosts
};

/// The same on all ranks. Vectors hold one value per rank.
struct CheckResult {
  std::vector<double> losses;
  std::vector<std::uint64_t> state_hashes;
  std::vector<std::uint64_t> payload_bytes;
  std::vector<std::uint64_t> network_bytes;
  std::size_t distinct_gradients = 0;  ///< distinct gradient hashes among the ranks
  std::size_t distinct_states = 0;
  std::optional<ReplicaDifference> difference;
};

/// Compares the state of this rank with that of all others. Costs a hash of the state and an all-gather of 40
/// bytes; only where states differ, a second all-gather of one hash per tensor.
class ReplicaCheck {
 public:
  /// `state` is watched: its memory must outlive this object.
  ReplicaCheck(World& world, std::vector<NamedBytes> state) : world_(world), state_(std::move(state)) {}

  /// Collective.
  CheckResult compare(const RankReport& own);

 private:
  std::string firstDifferingTensor(const OddRank& odd, const std::vector<std::uint64_t>& own_hashes);

  World& world_;
  std::vector<NamedBytes> state_;
};

/// `rank 2 differs from rank 0 in tensor "dense1.weight" (1 of 4 ranks differs)`
std::string describe(const ReplicaDifference& difference, std::size_t nranks);

}  // namespace tutti::train
