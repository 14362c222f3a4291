// Ranks that are threads of one process.
#pragma once

#include "transports/segment.h"
#include "transports/transport.h"

namespace tutti {

/// A peer's segment is found in the process's own cache; nothing is sent.
class InprocTransport final : public Transport {
 public:
  explicit InprocTransport(SegmentCache& cache) : cache_(cache) {}

  const char* name() const override { return "inproc"; }
  Reach reach(const PeerInfo& self, const PeerInfo& peer) const override;
  void offer(const PeerInfo&, const Segment&, Deadline) override {}
  std::shared_ptr<Segment> connect(const PeerInfo& peer, const SegmentToken& token, std::size_t bytes,
                                   Deadline deadline) override;

 private:
  SegmentCache& cache_;
};

}  // namespace tutti
