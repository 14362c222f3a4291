// Learns what the hosts of a communicator are made of, and what follows for it: rings, lanes, and where this
// rank's memory and threads belong.
#pragma once

#include <cstdint>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/cluster_exchange.h"
#include "runtime/core/settings.h"
#include "runtime/process.h"
#include "runtime/rings.h"
#include "runtime/wiring.h"

namespace tutti {

class ClusterWiring {
 public:
  /// Reads NCCL_GRAPH_FILE. Throws Error. All arguments outlive this.
  ClusterWiring(Process& process, const Settings& settings, const WiringRequest& request, Wiring& wiring);

  void describe(PeerInfo& self) const;
  /// A meeting of all ranks, which are on these hosts; `wiring` has peers and locals. Fills in the wiring's
  /// cluster and rings, and binds the calling thread near its rank until the wiring's binding is released.
  void learn(Bootstrap& bootstrap, const RanksByHost& hosts);
  /// The shape with lanes for GPUs, where they are left open.
  LinkShape withLanes(LinkShape shape) const;
  /// Of the rings: equal on all ranks.
  std::uint64_t digest() const { return digest_; }

 private:
  TopologyDescription lookAtHost() const;
  void bindNear();
  void dump() const;
  void sayRings() const;

  Process& process_;
  const Settings& settings_;
  const WiringRequest& request_;
  Wiring& wiring_;
  GraphFile graph_file_;
  std::uint64_t digest_ = 0;
};

/// Ranks have found the same rings, or Error: they have the same Tutti and the same machine before them.
void requireEqualRings(const std::vector<PeerInfo>& peers, const std::vector<std::uint64_t>& digests);

}  // namespace tutti
