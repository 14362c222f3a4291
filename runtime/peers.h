// Who the ranks are, and whether their processes live.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/peer.h"
#include "runtime/core/unique_fd.h"

namespace tutti {

/// What this process says about itself; rank, mailbox and links are the caller's to fill.
PeerInfo describeSelf(const std::array<std::uint8_t, 16>& process_token);

/// "rank 2 (pid 4711 on node7)".
std::string describe(const PeerInfo& peer);

/// Watches the processes of all other ranks by pidfd.
class PeerWatch {
 public:
  /// Throws Error naming the rank whose process is gone already, or cannot be watched.
  PeerWatch(const std::vector<PeerInfo>& peers, const PeerInfo& self);

  /// For each rank whether its process has ended. A thread of this process never has.
  std::vector<bool> dead() const;

 private:
  std::size_t nranks_;
  std::vector<int> ranks_;
  std::vector<UniqueFd> pidfds_;
};

}  // namespace tutti
