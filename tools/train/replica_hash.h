// Bit-equality of replicas by hash: equal state has equal hashes; that different state has equal ones is a
// matter of 1 in 2^64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tutti::train {

/// A tensor's memory under the name that messages use. Does not own it.
struct NamedBytes {
  std::string name;
  std::span<const std::byte> bytes;
};

/// XXH3, 64 bits.
std::uint64_t hashOf(std::span<const std::byte> bytes);

/// One hash per tensor.
std::vector<std::uint64_t> hashEach(std::span<const NamedBytes> tensors);

/// One hash over the hashes of all tensors.
std::uint64_t combinedHash(std::span<const std::uint64_t> hashes);

std::size_t countDistinct(std::span<const std::uint64_t> hashes);

/// A rank whose value differs, and the rank it is held against.
struct OddRank {
  std::size_t rank = 0;
  std::size_t reference = 0;
  std::size_t differing = 0;  ///< ranks whose value is not the reference's
};

/// With one value per rank: nothing when all are equal. Otherwise the reference is the first rank that holds
/// the most frequent value (so that a fault on rank 0 is not blamed on the others; with a tie nobody can
/// know), and `rank` the first one that holds another.
std::optional<OddRank> findOddRank(std::span<const std::uint64_t> value_of_rank);

}  // namespace tutti::train
