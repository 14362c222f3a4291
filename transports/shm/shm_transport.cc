#include "transports/shm/shm_transport.h"

#include "transports/link_memory.h"

namespace tutti {

Reach ShmTransport::reach(const PeerInfo& self, const PeerInfo& peer) const {
  const auto no = [](const char* reason) { return Reach{false, 0, reason}; };
  if (self.boot_id != peer.boot_id) return no("another host");
  if (self.net_namespace != peer.net_namespace) return no("another network namespace (container)");
  if (self.pid_namespace != peer.pid_namespace) return no("another pid namespace (container)");
  if (self.uid != peer.uid) return no("another user");
  return {true, 10, ""};
}

std::unique_ptr<LinkBundle> ShmTransport::offer(const PeerInfo& peer, const LinkShape& shape,
                                                Deadline deadline, Offer& offer) {
  auto segment = cache_.create(linkBytes(shape));
  mailbox_.send(peer, *segment, deadline);
  offer = {segment->token()};
  return std::make_unique<SegmentLinks>(std::move(segment), shape, peer.rank);
}

std::unique_ptr<LinkBundle> ShmTransport::connect(const PeerInfo& peer, const LinkShape& shape,
                                                  const Offer& offer, Deadline deadline) {
  const UniqueFd fd = mailbox_.receive(peer, offer.token, deadline);
  return std::make_unique<SegmentLinks>(cache_.map(offer.token, fd.get(), linkBytes(shape)), shape,
                                        peer.rank);
}

}  // namespace tutti
