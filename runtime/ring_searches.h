// The rings that were found last, so that equal searches of one process are made once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "runtime/rings.h"

namespace tutti {

/// Ranks that are threads, and communicators on the same ranks, ask for the same. Thread-safe: who asks for
/// what is being looked for waits for it.
class RingSearches {
 public:
  /// As findRings, from which what it throws comes, too.
  SearchResult find(const std::shared_ptr<const Cluster>& cluster, const TopologyRules& rules,
                    const GraphFile& file, TreeUse trees);

 private:
  /// All that a search depends on, and its result.
  struct Search {
    std::shared_ptr<const Cluster> cluster;
    TopologyRules rules;
    std::uint64_t file_hash;
    TreeUse trees;
    SearchResult result;
  };
  std::mutex mutex_;
  std::deque<Search> last_;  ///< the newest first
};

}  // namespace tutti
