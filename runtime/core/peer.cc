#include "runtime/core/peer.h"

#include <fmt/format.h>

namespace tutti {

std::string describe(const PeerInfo& peer) {
  return fmt::format("rank {} (pid {} on {})", peer.rank, peer.pid, peer.host.data());
}

}  // namespace tutti
