#include "tools/train/replica_check.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace tutti::train {

CheckResult ReplicaCheck::compare(const RankReport& own) {
  const std::vector<std::uint64_t> own_hashes = hashEach(state_);
  const std::array<std::uint64_t, 5> words{own.gradient_hash, combinedHash(own_hashes),
                                           std::bit_cast<std::uint64_t>(own.loss), own.payload_bytes,
                                           own.network_bytes};
  const std::vector<std::uint64_t> all = world_.gatherWords(words);
  std::vector<std::uint64_t> gradients;
  CheckResult result;
  for (std::size_t at = 0; at < all.size(); at += words.size()) {
    gradients.push_back(all[at]);
    result.state_hashes.push_back(all[at + 1]);
    result.losses.push_back(std::bit_cast<double>(all[at + 2]));
    result.payload_bytes.push_back(all[at + 3]);
    result.network_bytes.push_back(all[at + 4]);
  }
  result.distinct_gradients = countDistinct(gradients);
  result.distinct_states = countDistinct(result.state_hashes);
  if (const auto odd = findOddRank(result.state_hashes)) {
    result.difference =
        ReplicaDifference{odd->rank, odd->reference, odd->differing, firstDifferingTensor(*odd, own_hashes)};
  }
  return result;
}

std::string ReplicaCheck::firstDifferingTensor(const OddRank& odd,
                                               const std::vector<std::uint64_t>& own_hashes) {
  const std::vector<std::uint64_t> all = world_.gatherWords(own_hashes);
  const std::size_t count = own_hashes.size();
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    if (all[odd.rank * count + tensor] != all[odd.reference * count + tensor]) return state_[tensor].name;
  }
  return "(none: the all-gather of hashes gave two answers)";
}

std::string describe(const ReplicaDifference& difference, std::size_t nranks) {
  return fmt::format("rank {} differs from rank {} in tensor \"{}\" ({} of {} ranks {})", difference.rank,
                     difference.reference, difference.tensor, difference.differing, nranks,
                     difference.differing == 1 ? "differs" : "differ");
}

}  // namespace tutti::train
