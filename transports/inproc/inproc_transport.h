// Links between ranks that are threads of one process.
#pragma once

#include "transports/segment.h"
#include "transports/transport.h"

namespace tutti {

/// The receiver's segment is found in the process's own cache; nothing is sent.
class InprocTransport final : public Transport {
 public:
  explicit InprocTransport(SegmentCache& cache) : cache_(cache) {}

  const char* name() const override { return "inproc"; }
  Reach reach(const PeerInfo& self, const PeerInfo& peer) const override;
  std::unique_ptr<LinkBundle> offer(const PeerInfo& peer, const LinkShape& shape, Deadline deadline,
                                    Offer& offer) override;
  std::unique_ptr<LinkBundle> connect(const PeerInfo& peer, const LinkShape& shape, const Offer& offer,
                                      Deadline deadline) override;

 private:
  SegmentCache& cache_;
};

}  // namespace tutti
