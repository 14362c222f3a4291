// What every medium inside a host offers: a way for ranks to see the same memory.
//
// One rank of a host, its leader, makes a segment for all of them (rank_memory.h):
//   leader: offer(peer, segment)  ── token, by the bootstrap ──►  peer: connect(leader, token)
// Calls may block up to the deadline and throw Error, which names the peer.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/core/peer.h"
#include "transports/segment.h"

namespace tutti {

using Deadline = std::chrono::steady_clock::time_point;

/// Whether a medium connects two ranks, and if not, why: for the message when none does.
struct Reach {
  bool possible = false;
  int cost = 0;        ///< the cheapest possible transport is taken
  std::string reason;  ///< why not
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual const char* name() const = 0;
  virtual Reach reach(const PeerInfo& self, const PeerInfo& peer) const = 0;

  /// Gives `peer` access to the segment, which is this rank's.
  virtual void offer(const PeerInfo& peer, const Segment& segment, Deadline deadline) = 0;
  /// The segment of `bytes` that `peer` offered.
  virtual std::shared_ptr<Segment> connect(const PeerInfo& peer, const SegmentToken& token, std::size_t bytes,
                                           Deadline deadline) = 0;
};

}  // namespace tutti
