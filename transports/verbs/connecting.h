// Queue pairs on their way to their peers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/core/settings.h"
#include "transports/verbs/queue_pairs.h"

namespace tutti {

/// Connects queue pairs in a thread of its own. The kernel may have to ask the network for the peer's
/// hardware address, and waits seconds for an answer where nobody gives one; the other links of the rank, and
/// letters, must not wait with it. Whoever gives up lets go of this and of the pairs, and waits for nothing:
/// the thread keeps what it works on.
class Connecting {
 public:
  Connecting(std::shared_ptr<QueuePairs> pairs, const Gid& mine, const QueuePairAddress& remote,
             const RdmaSettings& settings);

  /// Nothing while it lasts; then what was wrong, or "" for connected.
  std::optional<std::string> result() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tutti
