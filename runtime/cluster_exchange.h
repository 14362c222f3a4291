// What the ranks' hosts are made of: one rank of each host looks, and all learn it. Hosts that are equal cost
// one: what is told is compared by its digest first, and each kind of host is described by one rank.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/core/accelerator.h"
#include "runtime/core/peer.h"
#include "runtime/topology/search.h"

namespace tutti {

/// The ranks of a communicator, by host, and in order on each. The first of a host looks at it.
using RanksByHost = std::vector<std::vector<int>>;

/// What the first rank of a host has to tell; of others all zero. Exchanged as bytes.
struct TopologyNotice {
  std::array<std::uint8_t, 16> digest{};
  std::uint32_t bytes = 0;  ///< of the description

  friend bool operator==(const TopologyNotice&, const TopologyNotice&) = default;
};

/// A host's description: NCCL's XML without what is one host's own (GUIDs, ranks).
struct TopologyDescription {
  std::string text;
  TopologyNotice notice;
  std::vector<std::string> added;  ///< GPUs: "0000:3b:00.0; it is added at NUMA node 0"
};
/// `topology` with the GPUs of these ranks added where they are missing: a process may see those only that it
/// uses. Throws Error where it is too large.
TopologyDescription describeTopology(Topology topology, const std::vector<int>& ranks,
                                     const std::vector<PeerInfo>& peers);

/// A meeting of all ranks. `notices` by rank; `own` is sent by the rank that is the first to have it. Returns
/// the same on all ranks. Throws Error.
std::shared_ptr<const Cluster> exchangeTopologies(Bootstrap& bootstrap, int rank, const std::string& own,
                                                  const std::vector<TopologyNotice>& notices,
                                                  const RanksByHost& hosts,
                                                  const std::vector<PeerInfo>& peers);

/// Writes the host of `rank` as NCCL's XML. Returns why it could not be written, or "".
std::string dumpTopology(const Cluster& cluster, int rank, const std::string& path);

}  // namespace tutti
