#include "tools/train/replica_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <set>

namespace tutti::train {

std::uint64_t hashOf(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::vector<std::uint64_t> hashEach(std::span<const NamedBytes> tensors) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(tensors.size());
  for (const NamedBytes& tensor : tensors) hashes.push_back(hashOf(tensor.bytes));
  return hashes;
}

std::uint64_t combinedHash(std::span<const std::uint64_t> hashes) { return hashOf(std::as_bytes(hashes)); }

std::size_t countDistinct(std::span<const std::uint64_t> hashes) {
  return std::set<std::uint64_t>(hashes.begin(), hashes.end()).size();
}

std::optional<OddRank> findOddRank(std::span<const std::uint64_t> value_of_rank) {
  const auto holders = [&](std::uint64_t value) {
    return std::count(value_of_rank.begin(), value_of_rank.end(), value);
  };
  const auto reference = std::max_element(
      value_of_rank.begin(), value_of_rank.end(),
      [&](std::uint64_t left, std::uint64_t right) { return holders(left) < holders(right); });
  const auto odd = std::find_if(value_of_rank.begin(), value_of_rank.end(),
                                [&](std::uint64_t value) { return value != *reference; });
  if (odd == value_of_rank.end()) return std::nullopt;
  return OddRank{static_cast<std::size_t>(odd - value_of_rank.begin()),
                 static_cast<std::size_t>(reference - value_of_rank.begin()),
                 value_of_rank.size() - static_cast<std::size_t>(holders(*reference))};
}

}  // namespace tutti::train
