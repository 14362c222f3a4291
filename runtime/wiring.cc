#include "runtime/wiring.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "collectives/planner.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/cluster_wiring.h"
#include "runtime/gpu_wiring.h"
#include "runtime/network_wiring.h"
#include "transports/inproc/inproc_transport.h"
#include "transports/memory_budget.h"
#include "transports/shm/mailbox.h"
#include "transports/shm/shm_transport.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// What every rank tells all others of its memory, once it has made it.
struct Offer {
  std::uint64_t address = 0;  ///< in its process
  std::int32_t fd = -1;       ///< in its process
};

/// What it tells before that.
struct Notice {
  SegmentToken token;       ///< by the first rank of a host
  std::uint64_t rings = 0;  ///< their digest
};

MailboxKey mailboxKey(const Secret& secret) {
  constexpr char kPurpose[] = "tutti mailbox";
  MailboxKey key;
  crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(kPurpose),
                     sizeof(kPurpose), secret.data(), secret.size());
  return key;
}

void requireEqualRules(const PeerInfo& peer, const PeerInfo& first) {
  const TopologyRules& theirs = peer.topology;
  const TopologyRules& ours = first.topology;
  const char* different =
      theirs.p2p_level != ours.p2p_level             ? "NCCL_P2P_LEVEL"
      : theirs.rdma_level != ours.rdma_level         ? "NCCL_NET_GDR_LEVEL"
      : theirs.cross_nic != ours.cross_nic           ? "NCCL_CROSS_NIC"
      : theirs.least_channels != ours.least_channels ? "NCCL_MIN_NCHANNELS (or NCCL_MIN_CTAS)"
      : theirs.most_channels != ours.most_channels   ? "NCCL_MAX_NCHANNELS (or NCCL_MAX_CTAS)"
      : peer.graph_file != first.graph_file          ? "what NCCL_GRAPH_FILE holds"
                                                     : nullptr;
  if (different == nullptr) return;
  throw Error(ncclInvalidUsage, fmt::format("{} differs between {} and {}. Set it equally on all ranks",
                                            different, describe(first), describe(peer)));
}

void requireEqualSettings(const std::vector<PeerInfo>& peers) {
  const auto require = [&](const PeerInfo& peer, const char* setting, std::uint32_t theirs_value,
                           std::uint32_t first_value) {
    if (theirs_value == first_value) return;
    const auto text = [](std::uint32_t value) {
      return value == 0 ? std::string("0 or auto") : std::to_string(value);
    };
    const std::string theirs = text(theirs_value);
    const std::string first = text(first_value);
    throw Error(ncclInvalidUsage,
                fmt::format("{} differs between ranks: {} on {}, {} on {}. Set it equally on all ranks",
                            setting, first, describe(peers[0]), theirs, describe(peer)));
  };
  const LinkShape& first = peers[0].links;
  for (const PeerInfo& peer : peers) {
    if (peer.links.on_gpu != first.on_gpu) {
      throw Error(ncclInvalidUsage,
                  fmt::format("{} works on {} memory, but {} on {} memory. Set TUTTI_DEVICE equally on all "
                              "ranks, and see that each has a GPU or none",
                              describe(peers[0]), first.on_gpu ? "GPU" : "host", describe(peer),
                              peer.links.on_gpu ? "GPU" : "host"));
    }
    require(peer, "TUTTI_SLOT_BYTES", peer.links.slot_bytes, first.slot_bytes);
    require(peer, "TUTTI_SLOTS", peer.links.slot_count, first.slot_count);
    require(peer, "NCCL_BUFFSIZE / TUTTI_SLOTS", peer.links.most_slot_bytes, first.most_slot_bytes);
    require(peer, "TUTTI_LANES", peer.links.lanes, first.lanes);
    require(peer, "TUTTI_CHECKSUM", peer.has_checksums, peers[0].has_checksums);
    require(peer, "the data bytes of a packet slot (by CPU and build)", peer.links.packet_bytes,
            first.packet_bytes);
    requireEqualRules(peer, peers[0]);
    if (peer.plans == peers[0].plans) continue;
    throw Error(
        ncclInvalidUsage,
        fmt::format("TUTTI_PLAN, NCCL_ALGO or NCCL_PROTO differ between {} and {}. Set them equally on all "
                    "ranks",
                    describe(peers[0]), describe(peer)));
  }
}

class Wirer {
 public:
  Wirer(Process& process, const Settings& settings, const WiringRequest& request)
      : process_(process),
        settings_(settings),
        request_(request),
        nranks_(request.nranks),
        rank_(request.rank),
        deadline_(std::chrono::steady_clock::now() + settings.init_timeout + std::chrono::seconds(5)),
        mailbox_(mailboxKey(request.id.secret)),
        inproc_(process.segments()),
        shm_(process.segments(), mailbox_),
        bootstrap_(request.id, nranks_, rank_, settings.network, deadline_, request.check) {}

  Wiring wire() {
    try {
      meet();
      cluster_->learn(bootstrap_, hosts_);
      fit();
      connectMemory();
      learnAccess();
      if (gpu_) gpu_->open(*request_.gpus, settings_, request_.wake);
      bootstrap_.barrier();  // nobody starts before all are connected, and have said what they can do
      takeAccess();
      if (gpu_) gpu_->settle();
      if (wiring_.layout.hosts > 1) {
        network_->connect(bootstrap_, memoryOf(local_).status());
      } else {
        bootstrap_.leave();
      }
      connectLinks();
      if (gpu_) startGpu();
      for (int rank = 0; rank < nranks_; ++rank) wiring_.transports.emplace_back(transportTo(rank));
      return std::move(wiring_);
    } catch (const Error& error) {
      bootstrap_.fail(
          fmt::format("{} failed while the communicator was being made: {}", describe(self_), error.what()));
      if (request_.gpus != nullptr && is_reserved_) {
        abandonGpu(
            process_, wiring_, rank_, [this](int local) { return &memoryOf(local).status(); }, error);
      }
      throw;
    }
  }

 private:
  void meet() {
    self_ = describeSelf(process_.token(), settings_.network.host_id);
    // To be on a host of its own is to be reached by the network.
    if (!settings_.uses_shared_memory && request_.gpus == nullptr) self_.host_id = self_.process_token;
    self_.rank = rank_;
    self_.mailbox = mailbox_.address();
    self_.listener = bootstrap_.address();
    network_.emplace(process_, settings_, request_, wiring_);
    cluster_.emplace(process_, settings_, request_, wiring_);
    network_->describe(self_);
    cluster_->describe(self_);
    self_.links = settings_.links;
    self_.plans = settings_.plans;
    wiring_.peers = bootstrap_.allGather(self_);
    requireEqualSettings(wiring_.peers);
    findHosts();
    wiring_.watch = std::make_unique<PeerWatch>(wiring_.peers, locals_, self_);
  }

  /// Ranks that share memory are a host, led by the first of them.
  void findHosts() {
    std::vector<int> leaders;
    std::vector<int> host_of(index(nranks_));
    std::vector<int> sizes;
    for (const PeerInfo& peer : wiring_.peers) {
      const auto sharesMemory = [&](int leader) {
        return transportBetween(wiring_.peers[index(leader)], peer);
      };
      const auto host = std::ranges::find_if(leaders, sharesMemory) - leaders.begin();
      if (host == std::ssize(leaders)) {
        leaders.push_back(peer.rank);
        sizes.push_back(0);
      }
      host_of[index(peer.rank)] = static_cast<int>(host);
      ++sizes[index(static_cast<int>(host))];
      hosts_.resize(leaders.size());
      hosts_[index(static_cast<int>(host))].push_back(peer.rank);
    }
    for (int rank = 0; rank < nranks_; ++rank) {
      if (host_of[index(rank)] != host_of[index(rank_)]) continue;
      if (rank == rank_) local_ = static_cast<int>(locals_.size());
      locals_.push_back(rank);
    }
    const bool is_uniform = std::ranges::count(sizes, sizes[0]) == std::ssize(sizes);
    const bool is_in_order = std::ranges::is_sorted(host_of);
    wiring_.locals = locals_;
    wiring_.layout = {nranks_, static_cast<std::int32_t>(leaders.size()),
                      is_uniform && is_in_order ? sizes[0] : 0};
  }

  void fit() {
    std::size_t most = 0;
    for (const auto& ranks : hosts_) most = std::max(most, ranks.size());
    // Network links of GPUs lie in memory that is pinned, or the GPU's: it has to be there.
    const bool pins_network = settings_.links.on_gpu && hosts_.size() > 1;
    wiring_.shape =
        fitShape(cluster_->withLanes(settings_.links), pins_network ? nranks_ : static_cast<int>(most));
  }

  int localCount() const { return static_cast<int>(locals_.size()); }

  std::size_t memoryBytes() const {
    return static_cast<std::size_t>(localCount()) * RankMemory::bytes(wiring_.shape, localCount());
  }

  RankMemory memoryOf(int local) const { return {wiring_.memory, wiring_.shape, localCount(), local}; }

  /// The cheaper of the media by which two ranks share memory; nullptr where none is possible.
  Transport* transportBetween(const PeerInfo& a, const PeerInfo& b) {
    if (inproc_.reach(a, b).possible) return &inproc_;
    return shm_.reach(a, b).possible ? &shm_ : nullptr;
  }

  /// The leader makes the memory of its host and gives it to the others; each allocates its own part.
  void connectMemory() {
    const bool leads = local_ == 0;
    if (leads) wiring_.memory = process_.segments().create(memoryBytes());
    const auto notices =
        bootstrap_.allGather(Notice{leads ? wiring_.memory->token() : SegmentToken{}, cluster_->digest()});
    std::vector<std::uint64_t> rings;
    rings.reserve(notices.size());
    for (const Notice& notice : notices) rings.push_back(notice.rings);
    requireEqualRings(wiring_.peers, rings);
    const PeerInfo& leader = wiring_.peers[index(locals_[0])];
    if (leads) {
      for (const int rank : locals_) {
        const PeerInfo& peer = wiring_.peers[index(rank)];
        if (rank != rank_) transportBetween(self_, peer)->offer(peer, *wiring_.memory, deadline_);
      }
    } else {
      wiring_.memory = transportBetween(leader, self_)
                           ->connect(leader, notices[index(leader.rank)].token, memoryBytes(), deadline_);
    }
    const RankMemory mine = memoryOf(local_);
    mine.reserve();
    is_reserved_ = true;
    mine.token() = wiring_.memory->token();
    wiring_.regions = &mine.regions();
    // Also tells that every part is allocated: from here on all may be touched.
    offers_ =
        bootstrap_.allGather(Offer{reinterpret_cast<std::uintptr_t>(&mine.token()), wiring_.memory->fd()});
    if (request_.gpus != nullptr) {
      gpu_.emplace(process_, wiring_, bootstrap_, local_, [this](int local) { return memoryOf(local); });
    }
    std::map<std::string, int> used;
    for (const int rank : locals_) {
      if (request_.gpus == nullptr && rank != rank_)
        ++used[transportBetween(self_, wiring_.peers[index(rank)])->name()];
    }
    for (const auto& [name, count] : used) {
      wiring_.summary += fmt::format("{}{} peer(s) by {}", wiring_.summary.empty() ? "" : ", ", count, name);
    }
  }

  bool isLocal(int rank) const { return std::ranges::binary_search(locals_, rank); }

  void connectLinks() {
    std::vector<RankStatus*> lines(index(nranks_));
    for (int rank = 0; wiring_.control != nullptr && rank < nranks_; ++rank) {
      lines[index(rank)] = &wiring_.control->copyOf(rank);
    }
    for (int local = 0; local < localCount(); ++local) {
      lines[index(locals_[index(local)])] = &memoryOf(local).status();
    }
    for (RankStatus* line : lines) wiring_.board.add(*line);
    const auto mesh = [this](const auto& linkOf) {
      LinkRow links{std::vector<LinkView>(index(nranks_)), std::vector<LinkView>(index(nranks_))};
      for (int local = 0; local < localCount(); ++local) {
        if (local == local_) continue;
        const int peer = locals_[index(local)];
        links.inbound[index(peer)] = linkOf(memoryOf(local_), local);
        links.outbound[index(peer)] = linkOf(memoryOf(local), local_);
        links.inbound[index(peer)].peer = peer;
        links.outbound[index(peer)].peer = peer;
      }
      return links;
    };
    for (std::uint32_t lane = 0; lane < wiring_.shape.lanes; ++lane) {
      wiring_.lanes.push_back(
          mesh([lane](const RankMemory& memory, int sender) { return memory.link(lane, sender); }));
      for (int peer = 0; peer < nranks_; ++peer) {
        if (isLocal(peer)) continue;
        wiring_.lanes.back().inbound[index(peer)] = wiring_.network->inbound(lane, peer);
        wiring_.lanes.back().outbound[index(peer)] = wiring_.network->outbound(lane, peer);
      }
    }
    if (localCount() > kMaxMeshRanks) return;
    wiring_.packets = mesh([](const RankMemory& memory, int sender) { return memory.packets(sender); });
  }

  /// Where GPU memory is in reach, links lie there.
  void startGpu() {
    GpuRank& gpu = *wiring_.gpu;
    for (int local = 0; local < localCount(); ++local) {
      if (!gpu_->reaches(local)) continue;
      const int peer = locals_[index(local)];
      for (std::uint32_t lane = 0; lane < wiring_.shape.lanes; ++lane) {
        wiring_.lanes[lane].inbound[index(peer)] = gpu.inbound(lane, peer);
        wiring_.lanes[lane].outbound[index(peer)] = gpu.outbound(lane, peer);
      }
      wiring_.packets.inbound[index(peer)] = gpu.packetsFrom(peer);
      wiring_.packets.outbound[index(peer)] = gpu.packetsTo(peer);
    }
    if (wiring_.network != nullptr) {
      const Network::Memory memory = wiring_.network->memory();
      wiring_.pinned.emplace_back(*request_.gpus, memory.bytes.data(), memory.bytes.size(), memory.owner);
    }
    gpu.start(wiring_.lanes, wiring_.packets, wiring_.rings);
    wiring_.summary = gpu_->summary();
    if (!network_->slotPlace().empty()) wiring_.summary += ", slots of RDMA in " + network_->slotPlace();
  }

  /// What can be done with memory is tried between the ranks of a host, if they are not too many for that.
  void learnAccess() {
    wiring_.peer_memory.resize(index(nranks_));
    wiring_.accepted.resize(index(nranks_));
    const bool tries = localCount() <= kMaxMeshRanks;
    for (int local = 0; tries && local < localCount(); ++local) {
      const PeerInfo& peer = wiring_.peers[index(locals_[index(local)])];
      const bool is_same_process = peer.process_token == self_.process_token;
      PeerMemory& memory = wiring_.peer_memory[index(peer.rank)];
      memory = PeerMemory(peer, memoryOf(local).regions(), is_same_process, process_.segments());
      const Offer& offer = offers_[index(peer.rank)];
      memoryOf(local_).access()[index(local)] =
          memory.probe(wiring_.memory->token(), offer.address, offer.fd);
    }
  }

  void takeAccess() {
    for (MemoryAccess& access : wiring_.accepted) access.network = true;
    const bool tries = localCount() <= kMaxMeshRanks;
    wiring_.accepted[index(rank_)].network = false;
    for (int local = 0; tries && local < localCount(); ++local) {
      wiring_.accepted[index(locals_[index(local)])] = memoryOf(local).access()[index(local_)];
    }
    if (tries && request_.gpus == nullptr) sayAccess();
  }

  /// For people who wonder why large buffers are slow.
  void sayAccess() {
    const auto count = [this](auto member) {
      return std::ranges::count_if(wiring_.accepted, [member](const MemoryAccess& a) { return a.*member; });
    };
    const auto direct = count(&MemoryAccess::direct);
    const auto others = localCount() - static_cast<int>(direct);  // this rank is one of the direct ones
    if (others == 0) return;
    wiring_.summary += fmt::format("; of {} in other processes, {} may map registered buffers", others,
                                   count(&MemoryAccess::regions));
    wiring_.summary +=
        fmt::format(", {} may copy any memory (process_vm_readv{})", count(&MemoryAccess::copies),
                    count(&MemoryAccess::copies) < others
                        ? ": forbidden here by Yama's ptrace_scope, seccomp or namespaces"
                        : "");
  }

  const char* transportTo(int rank) {
    if (rank == rank_) return "self";
    if (!isLocal(rank)) return network_->name();
    const PeerInfo& peer = wiring_.peers[index(rank)];
    if (!gpu_) return transportBetween(self_, peer)->name();
    if (!gpu_->reaches(static_cast<int>(std::ranges::lower_bound(locals_, rank) - locals_.begin())))
      return "pinned";
    return peer.process_token == self_.process_token ? "peer_access" : "cuda_ipc";
  }

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  Process& process_;
  const Settings& settings_;
  const WiringRequest& request_;
  int nranks_;
  int rank_;
  Deadline deadline_;
  Mailbox mailbox_;
  InprocTransport inproc_;
  ShmTransport shm_;
  Bootstrap bootstrap_;
  PeerInfo self_;
  RanksByHost hosts_;
  std::vector<int> locals_;  ///< ranks of this host, in order
  int local_ = 0;            ///< this rank's place among them
  std::vector<Offer> offers_;
  bool is_reserved_ = false;  ///< this rank's part of the host's memory may be touched
  Wiring wiring_;
  std::optional<NetworkWiring> network_;
  std::optional<ClusterWiring> cluster_;
  std::optional<GpuWiring> gpu_;
};

}  // namespace

Wiring makeWiring(Process& process, const Settings& settings, const WiringRequest& request) {
  return Wirer(process, settings, request).wire();
}

}  // namespace tutti
