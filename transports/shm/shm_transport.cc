#include "transports/shm/shm_transport.h"

namespace tutti {

Reach ShmTransport::reach(const PeerInfo& self, const PeerInfo& peer) const {
  const auto no = [](const char* reason) { return Reach{false, 0, reason}; };
  if (self.boot_id != peer.boot_id || self.host_id != peer.host_id) return no("another host");
  if (self.net_namespace != peer.net_namespace) return no("another network namespace (container)");
  if (self.pid_namespace != peer.pid_namespace) return no("another pid namespace (container)");
  if (self.uid != peer.uid) return no("another user");
  return {true, 10, ""};
}

std::shared_ptr<Segment> ShmTransport::connect(const PeerInfo& peer, const SegmentToken& token,
                                               std::size_t bytes, Deadline deadline) {
  return cache_.map(token, mailbox_.receive(peer, token, deadline), bytes, true);
}

}  // namespace tutti
