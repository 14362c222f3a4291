// Links between processes of one host, in shared memory.
#pragma once

#include "transports/shm/mailbox.h"
#include "transports/transport.h"

namespace tutti {

/// Needs no /dev/shm: memory is an anonymous file (memfd) that the receiver of a link hands to its sender.
/// Both processes need one kernel, one network and one pid namespace, and one user.
class ShmTransport final : public Transport {
 public:
  ShmTransport(SegmentCache& cache, Mailbox& mailbox) : cache_(cache), mailbox_(mailbox) {}

  const char* name() const override { return "shm"; }
  Reach reach(const PeerInfo& self, const PeerInfo& peer) const override;
  std::unique_ptr<LinkBundle> offer(const PeerInfo& peer, const LinkShape& shape, Deadline deadline,
                                    Offer& offer) override;
  std::unique_ptr<LinkBundle> connect(const PeerInfo& peer, const LinkShape& shape, const Offer& offer,
                                      Deadline deadline) override;

 private:
  SegmentCache& cache_;
  Mailbox& mailbox_;
};

}  // namespace tutti
