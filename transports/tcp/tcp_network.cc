#include "transports/tcp/tcp_network.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transports/faulty/faulty_wire.h"

namespace tutti {
namespace {

// A poll looks at the awaited link's socket itself, which is one call. From time to time it asks epoll for
// the others; and sends credits that are owed but not due: a rank that waits must not keep its peers waiting.
constexpr std::uint64_t kPollsPerService = 16;
constexpr std::uint64_t kPollsPerServiceManyLanes = 4;
constexpr std::uint64_t kPollsPerFlush = 256;

// Tokens of epoll: what, and which.
constexpr int kKindShift = 56;
constexpr std::uint64_t kDoor = std::uint64_t{1} << kKindShift;
constexpr std::uint64_t kSending = std::uint64_t{2} << kKindShift;
constexpr std::uint64_t kReceiving = std::uint64_t{3} << kKindShift;

std::unique_ptr<Wire> makeWire(const std::string& faults) {
  auto wire = std::make_unique<SystemWire>();
  if (faults.empty()) return wire;
  return std::make_unique<FaultyWire>(std::move(wire), parseFaults(faults));
}

std::vector<bool> remoteOf(const std::vector<TcpPeer>& peers, int rank) {
  std::vector<bool> is_remote;
  for (const TcpPeer& peer : peers) {
    const bool is_other = static_cast<int>(is_remote.size()) != rank;
    is_remote.push_back(is_other && peer.address.family != NetAddress::Family::none);
  }
  return is_remote;
}

}  // namespace

TcpNetwork::TcpNetwork(UniqueFd listener, const Secret& secret, int rank, std::vector<TcpPeer> peers,
                       const NetworkOptions& options)
    : NetworkDriver(options, remoteOf(peers, rank)),
      secret_(secret),
      wire_(makeWire(options.faults)),
      context_{
          .wire = *wire_,
          .secret = secret_,
          .epoll = epoll(),
          .rank = rank,
          .checksums = options.checksums,
          .altered = altered(),
          .recovery = options.recovery,
          .is_retired = [this](int peer) { return isRetired(peer); },
          .fail = [this](const std::string& text) { addFailure(text); },
          .note = options.note,
      },
      hot_lane_(peers.size()) {
  makeLinks(std::make_shared<LinkMemory>(linkCount(), options.slot_count, options.slot_bytes),
            [&](int peer, std::uint32_t lane, const Side& in, const Side& out) {
              const TcpPeer& other = peers[static_cast<std::size_t>(peer)];
              const LinkPeer who{.rank = peer, .lane = lane, .address = other.address, .name = other.name};
              const std::uint64_t place = placeOf(lane, peer);
              return Pair{std::make_unique<ReceivingLink>(context_, in.view, who, kReceiving | place),
                          std::make_unique<SendingLink>(context_, out.view, who, kSending | place)};
            });
  door_ = std::make_unique<Door>(context_, std::move(listener), kDoor,
                                 [this](const Hello& hello) { return find(hello); });
}

void TcpNetwork::poll(int peer) {
  if (isHalted()) return;
  ++polls_;
  const Manner manner = hasLinks(peer) ? pollPeer(peer) : Manner::patient;
  if (manner == Manner::by_events) takeEvents();
  if (polls_ % (manner == Manner::many_lanes ? kPollsPerServiceManyLanes : kPollsPerService) == 0) service();
  if (++idle_polls_ % kPollsPerFlush == 0) flushCredits();
  deliverFailures();
}

/// The sockets of the awaited links, directly where that pays.
TcpNetwork::Manner TcpNetwork::pollPeer(int peer) {
  std::uint32_t& hot = hot_lane_[static_cast<std::size_t>(peer)];
  std::uint32_t open = 0;
  bool is_bulk = false;
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    SendingLink& out = *pair(lane, peer).outbound;
    ReceivingLink& in = *pair(lane, peer).inbound;
    if (out.hasUnsent()) push(out);
    if (out.isReadable() || (out.isAwaited() && !out.isBulk())) out.ask();
    is_bulk = is_bulk || (out.isAwaited() && out.isBulk());
    if (!in.isOpen()) continue;
    ++open;
    if (in.isReadable()) hot = lane;
    if ((in.isReadable() || (lane == hot && !in.isBulk())) && in.ask()) idle_polls_ = 0;
    is_bulk = is_bulk || in.isBulk();
  }
  if (is_bulk) return Manner::by_events;
  return open > 1 ? Manner::many_lanes : Manner::patient;
}

void TcpNetwork::takeEvents() {
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(epoll(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)].data.u64);
  } while (count == static_cast<int>(events.size()));
  if (door_->isBusy()) door_->tend(Clock::now());
}

void TcpNetwork::handle(std::uint64_t token) {
  const std::uint64_t kind = token >> kKindShift << kKindShift;
  const std::uint64_t place = token - kind;
  if (kind == kDoor) {
    door_->wake(token);
  } else if (kind == kSending) {
    at(place).outbound->wake();
  } else {
    at(place).inbound->wake();
  }
}

ReceivingLink* TcpNetwork::find(const Hello& hello) {
  if (!hasLane(hello.from, hello.lane)) return nullptr;
  ReceivingLink& link = *pair(hello.lane, hello.from).inbound;
  use(link);
  return &link;
}

/// What was read of a socket only in part is reported by no event.
bool TcpNetwork::hasMore() const {
  return std::ranges::any_of(sending(), &SendingLink::isReadable) ||
         std::ranges::any_of(receiving(), &ReceivingLink::isReadable);
}

void TcpNetwork::acknowledge() {
  for (SendingLink* link : sending()) link->acknowledge();
  for (ReceivingLink* link : receiving()) link->acknowledge();
}

void TcpNetwork::sayBye() {
  for (SendingLink* link : sending()) link->sayBye();
  for (ReceivingLink* link : receiving()) link->sayBye();
}

void TcpNetwork::halt() {
  const auto turn = takeTurn();
  NetworkDriver::halt();
  door_->close();
}

}  // namespace tutti
