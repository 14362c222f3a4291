#include "runtime/wiring.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "collectives/planner.h"
#include "runtime/bootstrap.h"
#include "transports/inproc/inproc_transport.h"
#include "transports/memory_budget.h"
#include "transports/shm/mailbox.h"
#include "transports/shm/shm_transport.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// What every rank tells all others of its memory, once it has made it.
struct Offer {
  SegmentToken token{};
  std::uint64_t address = 0;  ///< in its process
  std::int32_t fd = -1;       ///< in its process
};

/// What a rank can do with the memory of each other rank.
using AccessTable = std::array<MemoryAccess, kMaxRanks>;

MailboxKey mailboxKey(const Secret& secret) {
  constexpr char kPurpose[] = "tutti mailbox";
  MailboxKey key;
  crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(kPurpose),
                     sizeof(kPurpose), secret.data(), secret.size());
  return key;
}

void requireEqualSettings(const std::vector<PeerInfo>& peers) {
  const auto require = [&](const PeerInfo& peer, const char* setting, std::uint32_t theirs,
                           std::uint32_t first) {
    if (theirs == first) return;
    throw Error(ncclInvalidUsage,
                fmt::format("{} differs between ranks: {} on {}, {} on {}. Set it equally on all ranks",
                            setting, first, describe(peers[0]), theirs, describe(peer)));
  };
  const LinkShape& first = peers[0].links;
  for (const PeerInfo& peer : peers) {
    require(peer, "TUTTI_SLOT_BYTES", peer.links.slot_bytes, first.slot_bytes);
    require(peer, "TUTTI_SLOTS", peer.links.slot_count, first.slot_count);
    require(peer, "TUTTI_LANES", peer.links.lanes, first.lanes);
    require(peer, "the data bytes of a packet slot (by CPU and build)", peer.links.packet_bytes,
            first.packet_bytes);
    if (peer.plan == peers[0].plan) continue;
    throw Error(
        ncclInvalidUsage,
        fmt::format("TUTTI_PLAN, NCCL_ALGO or NCCL_PROTO differ between {} and {}. Set them equally on all "
                    "ranks",
                    describe(peers[0]), describe(peer)));
  }
}

class Wirer {
 public:
  Wirer(Process& process, const Settings& settings, int nranks, const UniqueId& id, int rank)
      : process_(process),
        settings_(settings),
        nranks_(nranks),
        rank_(rank),
        deadline_(std::chrono::steady_clock::now() + settings.init_timeout + std::chrono::seconds(5)),
        mailbox_(mailboxKey(id.secret)),
        inproc_(process.segments()),
        shm_(process.segments(), mailbox_),
        bootstrap_(id, nranks, rank, settings.network, deadline_) {}

  Wiring wire() {
    try {
      meet();
      connectMemory();
      connectLinks();
      learnAccess();  // nobody starts before all are connected
      bootstrap_.leave();
      return std::move(wiring_);
    } catch (const Error& error) {
      bootstrap_.fail(
          fmt::format("{} failed while the communicator was being made: {}", describe(self_), error.what()));
      throw;
    }
  }

 private:
  void meet() {
    self_ = describeSelf(process_.token());
    self_.rank = rank_;
    self_.mailbox = mailbox_.address();
    self_.links = settings_.links;
    self_.plan = settings_.plan;
    wiring_.peers = bootstrap_.allGather(self_);
    requireEqualSettings(wiring_.peers);
    wiring_.shape = fitShape(settings_.links, nranks_);
    // All ranks take their memory at the same moment: what fits one by one need not fit together.
    requireFreeMemory(static_cast<std::size_t>(nranks_) * memoryBytes());
    wiring_.watch = std::make_unique<PeerWatch>(wiring_.peers, self_);
  }

  std::size_t memoryBytes() const { return RankMemory::bytes(wiring_.shape, nranks_); }

  Transport& transportTo(const PeerInfo& peer) {
    Transport* best = nullptr;
    int best_cost = 0;
    std::string reasons;
    for (Transport* transport : {static_cast<Transport*>(&inproc_), static_cast<Transport*>(&shm_)}) {
      const Reach reach = transport->reach(self_, peer);
      if (!reach.possible) {
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", transport->name(), reach.reason);
      } else if (best == nullptr || reach.cost < best_cost) {
        best = transport;
        best_cost = reach.cost;
      }
    }
    if (best != nullptr) return *best;
    throw Error(ncclSystemError,
                fmt::format("no transport connects {} and {} ({}). This version connects processes of "
                            "one user on one host",
                            describe(self_), describe(peer), reasons));
  }

  void connectMemory() {
    mine_ = process_.segments().create(memoryBytes());
    RankMemory(mine_, wiring_.shape, nranks_, rank_).token() = mine_->token();
    offers_ = bootstrap_.allGather(
        Offer{mine_->token(), reinterpret_cast<std::uintptr_t>(mine_->data()), mine_->fd()});
    // In rounds, so that every rank receives while it sends: what a transport hands over may queue up.
    std::vector<std::shared_ptr<Segment>> segments(index(nranks_));
    segments[index(rank_)] = mine_;
    std::map<std::string, int> used;
    for (int distance = 1; distance < nranks_; ++distance) {
      const PeerInfo& to = wiring_.peers[index((rank_ + distance) % nranks_)];
      const PeerInfo& from = wiring_.peers[index((rank_ - distance + nranks_) % nranks_)];
      transportTo(to).offer(to, *mine_, deadline_);
      Transport& transport = transportTo(from);
      segments[index(from.rank)] =
          transport.connect(from, offers_[index(from.rank)].token, memoryBytes(), deadline_);
      ++used[transport.name()];
    }
    for (int rank = 0; rank < nranks_; ++rank) {
      wiring_.memories.emplace_back(std::move(segments[index(rank)]), wiring_.shape, nranks_, rank);
      wiring_.board.add(wiring_.memories.back().status());
    }
    for (const auto& [name, count] : used) {
      wiring_.summary += fmt::format("{}{} peer(s) by {}", wiring_.summary.empty() ? "" : ", ", count, name);
    }
  }

  void connectLinks() {
    const auto mesh = [this](const auto& linkOf) {
      MeshLinks links{std::vector<LinkView>(index(nranks_)), std::vector<LinkView>(index(nranks_))};
      for (int peer = 0; peer < nranks_; ++peer) {
        if (peer == rank_) continue;
        links.inbound[index(peer)] = linkOf(wiring_.memories[index(rank_)], peer);
        links.outbound[index(peer)] = linkOf(wiring_.memories[index(peer)], rank_);
        links.inbound[index(peer)].peer = peer;
        links.outbound[index(peer)].peer = peer;
      }
      return links;
    };
    for (std::uint32_t lane = 0; lane < wiring_.shape.lanes; ++lane) {
      wiring_.lanes.push_back(
          mesh([lane](const RankMemory& memory, int sender) { return memory.link(lane, sender); }));
    }
    wiring_.packets = mesh([](const RankMemory& memory, int sender) { return memory.packets(sender); });
  }

  void learnAccess() {
    AccessTable mine{};
    for (const PeerInfo& peer : wiring_.peers) {
      const bool is_same_process = peer.process_token == self_.process_token;
      wiring_.peer_memory.emplace_back(peer, wiring_.memories[index(peer.rank)].regions(), is_same_process,
                                       process_.segments());
      const Offer& offer = offers_[index(peer.rank)];
      mine[index(peer.rank)] = wiring_.peer_memory.back().probe(offer.token, offer.address, offer.fd);
    }
    for (const AccessTable& theirs : bootstrap_.allGather(mine)) {
      wiring_.accepted.push_back(theirs[index(rank_)]);
    }
    sayAccess();
  }

  /// For people who wonder why large buffers are slow.
  void sayAccess() {
    const auto count = [this](auto member) {
      return std::ranges::count_if(wiring_.accepted, [member](const MemoryAccess& a) { return a.*member; });
    };
    const auto direct = count(&MemoryAccess::direct);
    const auto others = nranks_ - static_cast<int>(direct);  // this rank is one of the direct ones
    if (others == 0) return;
    wiring_.summary += fmt::format("; of {} in other processes, {} may map registered buffers", others,
                                   count(&MemoryAccess::regions));
    wiring_.summary +=
        fmt::format(", {} may copy any memory (process_vm_readv{})", count(&MemoryAccess::copies),
                    count(&MemoryAccess::copies) < others
                        ? ": forbidden here by Yama's ptrace_scope, seccomp or namespaces"
                        : "");
  }

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  Process& process_;
  const Settings& settings_;
  int nranks_;
  int rank_;
  Deadline deadline_;
  Mailbox mailbox_;
  InprocTransport inproc_;
  ShmTransport shm_;
  Bootstrap bootstrap_;
  PeerInfo self_;
  std::shared_ptr<Segment> mine_;
  std::vector<Offer> offers_;
  Wiring wiring_;
};

}  // namespace

Wiring makeWiring(Process& process, const Settings& settings, int nranks, const UniqueId& id, int rank) {
  return Wirer(process, settings, nranks, id, rank).wire();
}

}  // namespace tutti
