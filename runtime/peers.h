// Who the ranks are, and whether their processes live.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/peer.h"
#include "runtime/core/unique_fd.h"

namespace tutti {

/// What this process says about itself; rank, mailbox and links are the caller's to fill. `host_name`: what
/// the host is called among all hosts; empty: the kernel's boot id tells them apart.
PeerInfo describeSelf(const std::array<std::uint8_t, 16>& process_token, const std::string& host_name = "");

/// Watches the processes of other ranks of this host by pidfd. Where there are very many, each rank watches
/// the 64 that follow it: every process is watched by some, and what one finds it tells all.
class PeerWatch {
 public:
  /// `locals`: the ranks of this host. Throws Error naming the rank whose process is gone already, or cannot
  /// be watched.
  PeerWatch(const std::vector<PeerInfo>& peers, const std::vector<int>& locals, const PeerInfo& self);

  /// For each rank whether its process has ended. A thread of this process never has.
  std::vector<bool> dead() const;

  /// Ranks whose process was stopped by a signal, as far as /proc tells. Reads a file for each.
  std::vector<int> stopped() const;

 private:
  std::size_t nranks_;
  std::vector<int> ranks_;
  std::vector<int> pids_;  ///< of ranks_
  std::vector<UniqueFd> pidfds_;
};

}  // namespace tutti
