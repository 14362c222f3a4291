#include "transports/inproc/inproc_transport.h"

#include <fmt/format.h>

#include "transports/link_memory.h"
#include "tutti/error.h"

namespace tutti {

Reach InprocTransport::reach(const PeerInfo& self, const PeerInfo& peer) const {
  if (self.process_token != peer.process_token) return {false, 0, "another process"};
  return {true, 1, ""};
}

std::unique_ptr<LinkBundle> InprocTransport::offer(const PeerInfo& peer, const LinkShape& shape, Deadline,
                                                   Offer& offer) {
  auto segment = cache_.create(linkBytes(shape));
  offer = {segment->token()};
  return std::make_unique<SegmentLinks>(std::move(segment), shape, peer.rank);
}

std::unique_ptr<LinkBundle> InprocTransport::connect(const PeerInfo& peer, const LinkShape& shape,
                                                     const Offer& offer, Deadline) {
  auto segment = cache_.find(offer.token);
  if (segment == nullptr) {
    throw Error(ncclRemoteError, fmt::format("rank {} left while its links were being made", peer.rank));
  }
  return std::make_unique<SegmentLinks>(std::move(segment), shape, peer.rank);
}

}  // namespace tutti
