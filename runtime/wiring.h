// Makes everything that a communicator stands on: peers, links, status board. The composition root.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/peer.h"
#include "runtime/core/rank_status.h"
#include "runtime/peers.h"
#include "runtime/process.h"
#include "runtime/unique_id.h"
#include "transports/transport.h"

namespace tutti {

/// The connected surroundings of one rank.
struct Wiring {
  std::vector<PeerInfo> peers;  ///< by rank
  std::unique_ptr<PeerWatch> watch;
  std::shared_ptr<Segment> board_memory;
  RankStatus* board = nullptr;            ///< one line per rank, in board_memory
  std::unique_ptr<LinkBundle> from_left;  ///< this rank receives; nullptr for a single rank
  std::unique_ptr<LinkBundle> to_right;   ///< this rank sends
  std::string summary;                    ///< how the neighbours are connected, for the log
};

/// Meets the other ranks and connects to the ring neighbours. Throws Error naming what failed, and where;
/// then all ranks that are still at it get that error too.
Wiring makeWiring(Process& process, const Settings& settings, int nranks, const UniqueId& id, int rank);

}  // namespace tutti
