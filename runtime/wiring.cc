#include "runtime/wiring.h"

#include <fmt/format.h>
#include <sodium.h>

#include <cstring>

#include "runtime/bootstrap.h"
#include "transports/inproc/inproc_transport.h"
#include "transports/link_memory.h"
#include "transports/memory_budget.h"
#include "transports/shm/mailbox.h"
#include "transports/shm/shm_transport.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// What every rank tells all others once it has made its receiving ends.
struct Offers {
  Offer link;   ///< of the links from its left neighbour
  Offer board;  ///< rank 0 only
};

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
        bootstrap_(id, nranks, rank, deadline_) {}

  Wiring wire() {
    try {
      meet();
      makeReceivingEnds();
      joinSendingEnds();
      bootstrap_.allGather(std::uint8_t{1});  // nobody starts before all are connected
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
    wiring_.peers = bootstrap_.allGather(self_);
    requireEqualSettings(wiring_.peers);
    // All ranks take their memory at the same moment: what fits one by one need not fit together.
    requireFreeMemory(static_cast<std::size_t>(nranks_) * linkBytes(settings_.links) + boardBytes());
    wiring_.watch = std::make_unique<PeerWatch>(wiring_.peers, self_);
  }

  const PeerInfo& peer(int rank) const {
    return wiring_.peers[static_cast<std::size_t>((rank + nranks_) % nranks_)];
  }

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

  void makeReceivingEnds() {
    if (rank_ == 0) {
      wiring_.board_memory = process_.segments().create(boardBytes());
      for (const PeerInfo& other : wiring_.peers) {
        if (&transportTo(other) == &shm_) mailbox_.send(other, *wiring_.board_memory, deadline_);
      }
      mine_.board = {wiring_.board_memory->token()};
    }
    if (nranks_ == 1) return;
    const PeerInfo& left = peer(rank_ - 1);
    Transport& transport = transportTo(left);
    wiring_.from_left = transport.offer(left, settings_.links, deadline_, mine_.link);
    wiring_.summary = fmt::format("receives from rank {} by {}", left.rank, transport.name());
  }

  void joinSendingEnds() {
    const auto offers = bootstrap_.allGather(mine_);
    if (rank_ != 0) joinBoard(offers[0].board);
    wiring_.board = reinterpret_cast<RankStatus*>(wiring_.board_memory->data());
    if (nranks_ == 1) return;
    const PeerInfo& right = peer(rank_ + 1);
    Transport& transport = transportTo(right);
    wiring_.to_right = transport.connect(right, settings_.links,
                                         offers[static_cast<std::size_t>(right.rank)].link, deadline_);
    wiring_.summary += fmt::format(", sends to rank {} by {}", right.rank, transport.name());
  }

  void joinBoard(const Offer& offer) {
    if (&transportTo(peer(0)) == &inproc_) {
      wiring_.board_memory = process_.segments().find(offer.token);
    } else {
      const UniqueFd fd = mailbox_.receive(peer(0), offer.token, deadline_);
      wiring_.board_memory = process_.segments().map(offer.token, fd.get(), boardBytes());
    }
    if (wiring_.board_memory == nullptr)
      throw Error(ncclRemoteError, describe(peer(0)) + " left during init");
  }

  std::size_t boardBytes() const { return static_cast<std::size_t>(nranks_) * sizeof(RankStatus); }

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
  Offers mine_;
  Wiring wiring_;
};

}  // namespace

Wiring makeWiring(Process& process, const Settings& settings, int nranks, const UniqueId& id, int rank) {
  return Wirer(process, settings, nranks, id, rank).wire();
}

}  // namespace tutti
