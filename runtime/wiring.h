// Makes everything that a communicator stands on: peers, links, status board. The composition root.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/unique_id.h"
#include "runtime/control_plane.h"
#include "runtime/core/accelerator.h"
#include "runtime/core/peer.h"
#include "runtime/core/plan.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/ring_orders.h"
#include "runtime/core/unique_fd.h"
#include "runtime/cpu_binding.h"
#include "runtime/peers.h"
#include "runtime/pinned_memory.h"
#include "runtime/process.h"
#include "runtime/topology/search.h"
#include "transports/network.h"
#include "transports/peer_memory.h"
#include "transports/rank_memory.h"
#include "transports/transport.h"

namespace tutti {

/// The status lines of all ranks: each in its rank's own memory, which ranks of its host map; of other hosts,
/// copies that the control plane keeps.
class Board {
 public:
  void add(RankStatus& status) { lines_.push_back(&status); }
  RankStatus& operator[](int rank) const { return *lines_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<RankStatus*> lines_;
};

/// The connected surroundings of one rank.
struct Wiring {
  std::vector<PeerInfo> peers;  ///< by rank
  Layout layout;
  std::shared_ptr<const Cluster> cluster;  ///< what the hosts are made of, and where ranks sit: equal on all
  SearchResult found;                      ///< the channels of the cluster: equal on all
  CpuBinding binding;                      ///< of the thread that makes the communicator, for that time
  std::vector<int> locals;                 ///< ranks of this host, in order
  std::unique_ptr<PeerWatch> watch;
  Board board;
  RegionTable* regions = nullptr;   ///< this rank's
  std::shared_ptr<Segment> memory;  ///< what the ranks of this host share: links, status lines, regions
  UniqueFd listener;  ///< open while this rank takes part, for who asks; empty: the network has it
  std::unique_ptr<Network> network;       ///< links with other hosts; nullptr where there are none
  std::unique_ptr<ControlPlane> control;  ///< as network
  Accelerator* gpus = nullptr;            ///< as `gpu`
  std::vector<PinnedMemory> pinned;       ///< what GPUs work on of the memory above
  std::unique_ptr<GpuRank> gpu;           ///< nullptr: the ranks work on host memory
  std::vector<LinkRow> lanes;
  LinkRow packets;
  RingTables rings;                     ///< of the lanes
  std::vector<PeerMemory> peer_memory;  ///< by rank: what this rank can do with theirs
  std::vector<MemoryAccess> accepted;   ///< by rank: what they can do with this rank's
  LinkShape shape;                      ///< of the links, fitted to the rank count
  std::string network_name;             ///< "tcp", or RDMA by which ports
  std::vector<std::string> transports;  ///< by rank: what carries its links, as tutti/transport.h names it
  std::string summary;                  ///< how the ranks are connected, for the log
};

/// What is to be wired.
struct WiringRequest {
  int nranks;
  UniqueId id;
  int rank;
  Accelerator* gpus = nullptr;  ///< nullptr: host memory; else the memory of the calling thread's current GPU
  /// Becomes the communicator's fault when a network link is lost for good; from whatever thread finds it,
  /// until the network is gone.
  std::function<void(ncclResult_t, const std::string&)> fail;
  /// A captured launch runs, and will post to other hosts; see GpuRankOptions.
  std::function<void()> wake;
  /// See JoinTerms.
  std::function<void()> check;
};

/// Meets the other ranks and connects to each of them. Throws Error naming what failed, and where;
/// then all ranks that are still at it get that error too.
Wiring makeWiring(Process& process, const Settings& settings, const WiringRequest& request);

}  // namespace tutti
