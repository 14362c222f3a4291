// Ranks that are processes of one host.
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
  void offer(const PeerInfo& peer, const Segment& segment, Deadline deadline) override {
    mailbox_.send(peer, segment, deadline);
  }
  std::shared_ptr<Segment> connect(const PeerInfo& peer, const SegmentToken& token, std::size_t bytes,
                                   Deadline deadline) override;

 private:
  SegmentCache& cache_;
  Mailbox& mailbox_;
};

}  // namespace tutti
