#include "transports/tcp/tcp_network.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/faulty/faulty_wire.h"
#include "tutti/error.h"

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

UniqueFd makeEpoll() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    throw Error(ncclSystemError,
                fmt::format("epoll_create1: {} (errno {}). Raise the limit of open files (ulimit -n)",
                            std::strerror(errno), errno));
  }
  return epoll;
}

std::unique_ptr<Wire> makeWire(const std::string& faults) {
  auto wire = std::make_unique<SystemWire>();
  if (faults.empty()) return wire;
  return std::make_unique<FaultyWire>(std::move(wire), parseFaults(faults));
}

std::size_t linkCount(const std::vector<TcpPeer>& peers, std::uint32_t lanes) {
  const auto remote = std::count_if(peers.begin(), peers.end(), [](const TcpPeer& peer) {
    return peer.address.family != NetAddress::Family::none;
  });
  return static_cast<std::size_t>(remote) * lanes * 2;
}

}  // namespace

TcpNetwork::TcpNetwork(UniqueFd listener, const Secret& secret, int rank, std::vector<TcpPeer> peers,
                       TcpOptions options)
    : options_(std::move(options)),
      rank_(rank),
      secret_(secret),
      peers_(std::move(peers)),
      wire_(makeWire(options_.faults)),
      epoll_(makeEpoll()),
      retired_(peers_.size()),
      context_{
          .wire = *wire_,
          .secret = secret_,
          .epoll = epoll_.get(),
          .rank = rank,
          .checksums = options_.checksums,
          .altered = altered_,
          .recovery = options_.recovery,
          .is_retired =
              [this](int peer) {
                return retired_[static_cast<std::size_t>(peer)].load(std::memory_order_relaxed) || has_ended_;
              },
          .fail = [this](const std::string& text) { failures_.push_back(text); },
          .note = options_.note,
      },
      memory_(std::make_shared<LinkMemory>(linkCount(peers_, options_.lanes), options_.slot_count,
                                           options_.slot_bytes)),
      pairs_(peers_.size() * options_.lanes),
      hot_lane_(peers_.size()) {
  makeLinks();
  door_ = std::make_unique<Door>(context_, std::move(listener), kDoor,
                                 [this](const Hello& hello) { return find(hello); });
}

TcpNetwork::~TcpNetwork() = default;

void TcpNetwork::makeLinks() {
  std::size_t made = 0;
  for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer) {
    const TcpPeer& other = peers_[static_cast<std::size_t>(peer)];
    if (other.address.family == NetAddress::Family::none || peer == rank_) continue;
    for (std::uint32_t lane = 0; lane < options_.lanes; ++lane) {
      const auto number = static_cast<std::uint64_t>(peer) * options_.lanes + lane;
      const auto view = [&] {
        LinkView result = memory_->link(made++);
        result.peer = peer;
        return result;
      };
      const LinkPeer who{.rank = peer, .lane = lane, .address = other.address, .name = other.name};
      pair(lane, peer) = {
          .inbound = std::make_unique<ReceivingLink>(context_, view(), who, kReceiving | number),
          .outbound = std::make_unique<SendingLink>(context_, view(), who, kSending | number)};
    }
  }
}

LinkView TcpNetwork::inbound(std::uint32_t lane, int peer) const { return pair(lane, peer).inbound->view(); }

LinkView TcpNetwork::outbound(std::uint32_t lane, int peer) const {
  return pair(lane, peer).outbound->view();
}

// Callers.

void TcpNetwork::enter() {
  turn_.lock();
  ++depth_;
}

void TcpNetwork::leave() {
  if (--depth_ == 0 && !is_halted_) {
    for (SendingLink* link : sending_) link->push();
    for (ReceivingLink* link : receiving_) link->push(ReceivingLink::Credits::lazily);
    deliverFailures();
  }
  const bool is_last = depth_ == 0;
  const bool has_unsent =
      is_last && !is_halted_ &&
      std::any_of(sending_.begin(), sending_.end(), [](const auto* link) { return link->hasUnsent(); });
  turn_.unlock();
  if (!is_last || !wake_) return;
  const bool was_watched = watched_.load(std::memory_order_relaxed) && watched_.exchange(false);
  if (was_watched || has_unsent) wake_();
}

void TcpNetwork::pushOutbound(SendingLink& link) {
  if (link.isIdle() && link.hasUnsent()) sending_.push_back(&link);
  link.push();
}

void TcpNetwork::push(int peer) {
  if (is_halted_ || !hasLinks(peer)) return;
  for (std::uint32_t lane = 0; lane < options_.lanes; ++lane) {
    Pair& links = pair(lane, peer);
    if (links.outbound->hasUnsent()) pushOutbound(*links.outbound);
    if (links.inbound->owesCredits()) links.inbound->push(ReceivingLink::Credits::lazily);
  }
}

void TcpNetwork::poll(int peer) {
  if (is_halted_) return;
  ++polls_;
  const Manner manner = hasLinks(peer) ? pollPeer(peer) : Manner::patient;
  if (manner == Manner::by_events) takeEvents();
  if (polls_ % (manner == Manner::many_lanes ? kPollsPerServiceManyLanes : kPollsPerService) == 0) service();
  if (++idle_polls_ % kPollsPerFlush == 0) flushCredits();
  if (!failures_.empty()) deliverFailures();
}

/// The sockets of the awaited links, directly where that pays.
TcpNetwork::Manner TcpNetwork::pollPeer(int peer) {
  std::uint32_t& hot = hot_lane_[static_cast<std::size_t>(peer)];
  std::uint32_t open = 0;
  bool is_bulk = false;
  for (std::uint32_t lane = 0; lane < options_.lanes; ++lane) {
    SendingLink& out = *pair(lane, peer).outbound;
    ReceivingLink& in = *pair(lane, peer).inbound;
    if (out.hasUnsent()) pushOutbound(out);
    if (out.isReadable() || (out.isAwaited() && !out.isBulk())) out.receive();
    is_bulk = is_bulk || (out.isAwaited() && out.isBulk());
    if (!in.isOpen()) continue;
    ++open;
    if (in.isReadable()) hot = lane;
    if ((in.isReadable() || (lane == hot && !in.isBulk())) && in.receive()) idle_polls_ = 0;
    is_bulk = is_bulk || in.isBulk();
  }
  if (is_bulk) return Manner::by_events;
  return open > 1 ? Manner::many_lanes : Manner::patient;
}

void TcpNetwork::nap(std::chrono::nanoseconds limit) {
  if (is_halted_) {
    sleep(limit);
    return;
  }
  flushCredits();
  service();
  // What was read of a socket only in part is reported by no event.
  if (!isReadable()) sleep(limit);
  service();
}

// ppoll of the epoll descriptor: in nanoseconds on every kernel.
void TcpNetwork::sleep(std::chrono::nanoseconds limit) const {
  pollfd events{epoll_.get(), POLLIN, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((limit - seconds).count())};
  ::ppoll(&events, 1, &time, nullptr);
}

// Moving what there is.

void TcpNetwork::flushCredits() {
  for (ReceivingLink* link : receiving_) link->push(ReceivingLink::Credits::all);
}

void TcpNetwork::takeEvents() {
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)].data.u64);
  } while (count == static_cast<int>(events.size()));
}

void TcpNetwork::handle(std::uint64_t token) {
  const std::uint64_t kind = token >> kKindShift << kKindShift;
  const std::uint64_t number = token - kind;
  if (kind == kDoor) {
    door_->wake(token);
  } else if (kind == kSending) {
    pairs_[number].outbound->wake();
  } else {
    pairs_[number].inbound->wake();
  }
}

/// Everything that can be done now, once.
void TcpNetwork::service() {
  takeEvents();
  const auto now = Clock::now();
  if (door_->isBusy()) door_->tend(now);
  for (SendingLink* link : sending_) {
    link->tend(now);
    if (link->hasUnsent()) link->push();
    if (link->isReadable()) link->receive();
  }
  for (ReceivingLink* link : receiving_) {
    link->tend(now);
    if (link->isReadable()) link->receive();
  }
  deliverFailures();
}

ReceivingLink* TcpNetwork::find(const Hello& hello) {
  const bool exists = hello.from >= 0 && hello.from < static_cast<std::int32_t>(peers_.size()) &&
                      hello.from != rank_ && hello.lane < options_.lanes && hasLinks(hello.from);
  if (!exists) return nullptr;
  ReceivingLink* link = pair(hello.lane, hello.from).inbound.get();
  if (std::find(receiving_.begin(), receiving_.end(), link) == receiving_.end()) receiving_.push_back(link);
  return link;
}

void TcpNetwork::deliverFailures() {
  for (const std::string& text : std::exchange(failures_, {})) {
    if (options_.fail) options_.fail(ncclRemoteError, text);
  }
}

// The Watcher.

bool TcpNetwork::isReadable() const {
  return std::any_of(sending_.begin(), sending_.end(), [](const auto* link) { return link->isReadable(); }) ||
         std::any_of(receiving_.begin(), receiving_.end(),
                     [](const auto* link) { return link->isReadable(); });
}

bool TcpNetwork::isPending() const {
  return door_->isBusy() ||
         std::any_of(sending_.begin(), sending_.end(), [](const auto* link) { return link->isPending(); }) ||
         std::any_of(receiving_.begin(), receiving_.end(),
                     [](const auto* link) { return link->isPending(); });
}

TcpNetwork::Visit TcpNetwork::visit() {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn || depth_ != 0) return Visit::busy;
  if (!is_halted_) {
    service();
    // All that the rings have room for, which ends this.
    while (isReadable() && !is_halted_) service();
    flushCredits();
    if (isPending()) return Visit::again;
  }
  watched_.store(true);
  return Visit::idle;
}

bool TcpNetwork::isSettled(Clock::time_point now) const {
  const auto isSettled = [now](const auto* link) { return link->isSettled(now); };
  return std::all_of(sending_.begin(), sending_.end(), isSettled) &&
         std::all_of(receiving_.begin(), receiving_.end(), isSettled);
}

bool TcpNetwork::drain(Clock::time_point deadline) {
  constexpr auto kStep = std::chrono::milliseconds(1);
  bool said_bye = false;
  for (;;) {
    {
      const std::lock_guard turn(turn_);
      if (is_halted_) return false;
      flushCredits();
      service();
      if (isSettled(Clock::now())) {
        if (said_bye) return true;
        for (SendingLink* link : sending_) link->sayBye();
        for (ReceivingLink* link : receiving_) link->sayBye();
        said_bye = has_ended_ = true;
        if (isSettled(Clock::now())) return true;
      }
    }
    if (Clock::now() >= deadline) return said_bye;
    sleep(kStep);
  }
}

void TcpNetwork::retire(int peer) {
  retired_[static_cast<std::size_t>(peer)].store(true, std::memory_order_relaxed);
}

void TcpNetwork::halt() {
  const std::lock_guard turn(turn_);
  is_halted_ = true;
  for (Pair& links : pairs_) {
    if (links.outbound == nullptr) continue;
    links.outbound->close();
    links.inbound->close();
  }
  door_->close();
}

}  // namespace tutti
