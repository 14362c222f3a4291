#include "tools/train/replica_check.h"

#include <fmt/format.h>

#include <array>

#include "tools/train/gather.h"

namespace tutti::train {

CheckResult ReplicaCheck::compare(std::uint64_t gradient_hash) {
  const std::vector<std::uint64_t> own_hashes = hashEach(state_);
  const std::array<std::uint64_t, 2> own{gradient_hash, combinedHash(own_hashes)};
  const std::vector<std::uint64_t> all = gatherWords(comm_, own);
  std::vector<std::uint64_t> gradients;
  std::vector<std::uint64_t> states;
  for (std::size_t at = 0; at < all.size(); at += own.size()) {
    gradients.push_back(all[at]);
    states.push_back(all[at + 1]);
  }

  CheckResult result{countDistinct(gradients), own[1], countDistinct(states), std::nullopt};
  if (const auto odd = findOddRank(states)) {
    result.difference =
        ReplicaDifference{odd->rank, odd->reference, odd->differing, firstDifferingTensor(*odd, own_hashes)};
  }
  return result;
}

std::string ReplicaCheck::firstDifferingTensor(const OddRank& odd,
                                               const std::vector<std::uint64_t>& own_hashes) {
  const std::vector<std::uint64_t> all = gatherWords(comm_, own_hashes);
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
