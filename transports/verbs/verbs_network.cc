#include "transports/verbs/verbs_network.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/error.h"

namespace tutti {
namespace {

// A poll looks at the awaited links' completions, which is no system call. From time to time it looks at all
// others, and at what devices and peers say, which are some. Credits that are owed but not due wait for a
// nap: nobody waits for them, and the rank that sends them is not looking meanwhile.
constexpr std::uint64_t kPollsPerService = 256;

UniqueFd require(UniqueFd fd, const char* what) {
  if (fd) return fd;
  throw Error(ncclSystemError, fmt::format("{}: {} (errno {}). Raise the limit of open files (ulimit -n)",
                                           what, std::strerror(errno), errno));
}

VerbsEvent readEvent(const VerbsDevice& device, const ibv_async_event& event) {
  VerbsEvent told;
  told.effect = effectOf(event.event_type);
  told.device = &device;
  std::string where = device.name();
  if (told.effect == EventEffect::port_lost || told.effect == EventEffect::port_back) {
    told.port = event.element.port_num;
    where = fmt::format("{}:{}", where, told.port);
  } else if (event.event_type == IBV_EVENT_CQ_ERR) {
    told.pairs = static_cast<const QueuePairs*>(event.element.cq->cq_context);
  } else if (told.effect == EventEffect::pairs_lost) {
    told.pairs = static_cast<const QueuePairs*>(event.element.qp->qp_context);
  }
  told.text = fmt::format("{}: {}", where, explain(event.event_type));
  return told;
}

std::size_t linkCount(const std::vector<std::string>& peers, std::uint32_t lanes) {
  const auto remote = std::ranges::count_if(peers, [](const std::string& peer) { return !peer.empty(); });
  return static_cast<std::size_t>(remote) * lanes * 2;
}

}  // namespace

VerbsNetwork::VerbsNetwork(std::vector<VerbsPort> ports, RdmaOptions options)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      user_memory_({.in_place = options_.tell_path, .copied = options_.note}),
      faults_(options_.faults),
      epoll_(require(UniqueFd(::epoll_create1(EPOLL_CLOEXEC)), "epoll_create1")),
      letters_fd_(require(UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), "eventfd")),
      retired_(options_.peers.size()),
      slots_(placeSlots(options_, ports_, linkCount(options_.peers, options_.lanes))),
      memory_(std::make_shared<LinkMemory>(linkCount(options_.peers, options_.lanes), options_.slot_count,
                                           options_.slot_bytes,
                                           slots_.gpu == nullptr ? nullptr : slots_.gpu->memory())),
      context_{
          .settings = options_.settings,
          .ports = ports_,
          .user_memory = user_memory_,
          .gpu_slots = slots_.gpu.get(),
          .rank = options_.rank,
          .checksums = options_.checksums,
          .faults = faults_.isNone() ? nullptr : &faults_,
          .altered = altered_,
          .is_retired =
              [this](int peer) {
                return retired_[static_cast<std::size_t>(peer)].load(std::memory_order_relaxed) || has_ended_;
              },
          .tell = [this](int peer, Letter letter) { tell_(peer, std::move(letter)); },
          .fail = [this](const std::string& text) { failures_.push_back(text); },
          .note = options_.note,
          .tell_path = options_.tell_path,
      },
      pairs_(options_.peers.size() * options_.lanes) {
  makeLinks();
  watchDevices();
}

VerbsNetwork::~VerbsNetwork() = default;

void VerbsNetwork::makeLinks() {
  std::size_t made = 0;
  for (int peer = 0; peer < static_cast<int>(options_.peers.size()); ++peer) {
    const std::string& name = options_.peers[static_cast<std::size_t>(peer)];
    if (name.empty()) continue;
    for (std::uint32_t lane = 0; lane < options_.lanes; ++lane) {
      const VerbsLinkPeer who{.rank = peer, .lane = lane, .name = name};
      const auto make = [&]<class End>(std::unique_ptr<End>& end) {
        LinkView view = memory_->link(made);
        view.peer = peer;
        end = std::make_unique<End>(context_, view, memory_->bytesOf(made++), who);
      };
      make(pair(lane, peer).inbound);
      make(pair(lane, peer).outbound);
    }
  }
}

void VerbsNetwork::watchDevices() {
  const auto watch = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
      throw Error(ncclSystemError, fmt::format("epoll_ctl: {} (errno {})", std::strerror(errno), errno));
  };
  watch(letters_fd_.get());
  for (const VerbsPort& port : ports_) {
    if (std::ranges::find(devices_, port.device) != devices_.end()) continue;
    devices_.push_back(port.device);
    watch(port.device->channel()->fd);
    watch(port.device->eventFd());
  }
}

LinkView VerbsNetwork::inbound(std::uint32_t lane, int peer) const {
  return pair(lane, peer).inbound->view();
}

LinkView VerbsNetwork::outbound(std::uint32_t lane, int peer) const {
  return pair(lane, peer).outbound->view();
}

// Callers.

void VerbsNetwork::enter() {
  turn_.lock();
  ++depth_;
}

void VerbsNetwork::leave() {
  if (--depth_ == 0 && !is_halted_) {
    for (SendingEnd* link : sending_) link->push();
    for (ReceivingEnd* link : receiving_) link->push(ReceivingEnd::Credits::lazily);
    deliverFailures();
  }
  const bool is_last = depth_ == 0;
  const bool is_urgent = is_last && !is_halted_ && std::ranges::any_of(sending_, &SendingEnd::isUrgent);
  turn_.unlock();
  if (!is_last || !wake_) return;
  const bool was_watched = watched_.load(std::memory_order_relaxed) && watched_.exchange(false);
  if (was_watched || is_urgent) wake_();
}

void VerbsNetwork::pushOutbound(SendingEnd& link) {
  if (link.isIdle() && link.hasUnsent()) sending_.push_back(&link);
  link.push();
}

void VerbsNetwork::push(int peer) {
  if (is_halted_ || !hasLinks(peer)) return;
  for (std::uint32_t lane = 0; lane < options_.lanes; ++lane) {
    Pair& links = pair(lane, peer);
    if (links.outbound->hasUnsent()) pushOutbound(*links.outbound);
    if (links.inbound->owesCredits()) links.inbound->push(ReceivingEnd::Credits::lazily);
  }
}

void VerbsNetwork::poll(int peer) {
  if (is_halted_) return;
  ++polls_;
  for (std::uint32_t lane = 0; hasLinks(peer) && lane < options_.lanes; ++lane) {
    Pair& links = pair(lane, peer);
    links.outbound->receive();
    if (links.outbound->hasUnsent()) pushOutbound(*links.outbound);
    links.inbound->receive();
  }
  if (polls_ % kPollsPerService == 0) service();
  if (!failures_.empty()) deliverFailures();
}

void VerbsNetwork::nap(std::chrono::nanoseconds limit) {
  if (is_halted_) return sleep(limit);
  flushCredits();
  // What came before they were armed makes no event.
  arm();
  service();
  sleep(limit);
  service();
}

void VerbsNetwork::sleep(std::chrono::nanoseconds limit) const {
  pollfd events{epoll_.get(), POLLIN, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((limit - seconds).count())};
  ::ppoll(&events, 1, &time, nullptr);
}

// Moving what there is.

void VerbsNetwork::arm() {
  if (slots_.gpu != nullptr) slots_.gpu->arm();
  for (SendingEnd* link : sending_) link->arm();
  for (ReceivingEnd* link : receiving_) link->arm();
}

void VerbsNetwork::flushCredits() {
  for (ReceivingEnd* link : receiving_) link->push(ReceivingEnd::Credits::all);
}

void VerbsNetwork::service() {
  takeEvents();
  const auto now = VerbsClock::now();
  for (SendingEnd* link : sending_) {
    link->receive();
    link->tend(now);
    if (link->hasUnsent()) link->push();
  }
  for (ReceivingEnd* link : receiving_) {
    link->receive();
    link->tend(now);
  }
  deliverFailures();
}

void VerbsNetwork::takeEvents() {
  takeLetters();
  takeCompletionEvents();
  takeDeviceEvents();
}

void VerbsNetwork::takeCompletionEvents() {
  for (const auto& device : devices_) {
    ibv_cq* queue = nullptr;
    void* token = nullptr;
    while (device->verbs().get_cq_event(device->channel(), &queue, &token) == 0) {
      static_cast<QueuePairs*>(token)->tookEvent();
    }
  }
}

void VerbsNetwork::takeDeviceEvents() {
  for (const auto& device : devices_) {
    ibv_async_event event{};
    while (device->verbs().get_async_event(device->context(), &event) == 0) {
      const VerbsEvent told = readEvent(*device, event);
      device->verbs().ack_async_event(&event);
      takeDeviceEvent(told);
    }
  }
}

void VerbsNetwork::takeDeviceEvent(const VerbsEvent& event) {
  if (event.effect == EventEffect::none) return;
  if (event.effect == EventEffect::device_lost) {
    // Its descriptors would be readable for ever.
    for (const int fd : {event.device->channel()->fd, event.device->eventFd()})
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
  // Those of a connection's own are told with what became of it.
  if (event.effect != EventEffect::pairs_lost && options_.note) options_.note("RDMA " + event.text);
  for (SendingEnd* link : sending_) link->hear(event);
  for (ReceivingEnd* link : receiving_) link->hear(event);
}

void VerbsNetwork::hear(int peer, std::span<const std::uint8_t> letter) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back({peer, Letter(letter.begin(), letter.end())});
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(letters_fd_.get(), &one, sizeof(one));
}

void VerbsNetwork::takeLetters() {
  std::uint64_t count = 0;
  if (::read(letters_fd_.get(), &count, sizeof(count)) < 0) return;
  std::vector<Received> letters;
  {
    const std::lock_guard lock(inbox_mutex_);
    letters.swap(inbox_);
  }
  for (const Received& received : letters) read(received);
}

void VerbsNetwork::read(const Received& received) {
  const std::string problem = readLetter(received);
  if (problem.empty() || !options_.note) return;
  options_.note(
      fmt::format("a letter of rank {} about RDMA connections is refused: {}", received.peer, problem));
}

/// What is wrong with it, or "".
std::string VerbsNetwork::readLetter(const Received& received) {
  LetterHead head;
  if (received.letter.size() < sizeof(head)) return fmt::format("{} bytes", received.letter.size());
  std::memcpy(&head, received.letter.data(), sizeof(head));
  const bool is_peer = received.peer >= 0 && received.peer < static_cast<int>(options_.peers.size()) &&
                       hasLinks(received.peer);
  if (!is_peer) return "there are no links with that rank";
  if (head.lane >= options_.lanes) return fmt::format("lane {} of {}", head.lane, options_.lanes);
  std::string problem = problemOf(head);
  if (!problem.empty()) return problem;
  Pair& links = pair(head.lane, received.peer);
  const auto pass = [&]<class T>(const std::optional<T>& letter, auto& end) {
    if (letter) return end.hear(*letter);
    problem = fmt::format("{} bytes instead of {}", received.letter.size(), sizeof(T));
  };
  switch (head.kind) {
    case LetterKind::hello:
      pass(tutti::readLetter<HelloLetter>(received.letter), *links.inbound);
      break;
    case LetterKind::answer:
      pass(tutti::readLetter<AnswerLetter>(received.letter), *links.outbound);
      break;
    case LetterKind::broken:
      pass(tutti::readLetter<BrokenLetter>(received.letter), *links.outbound);
      break;
    case LetterKind::bye:
      pass(tutti::readLetter<ByeLetter>(received.letter), *links.inbound);
      break;
  }
  const bool is_new =
      !links.inbound->isAbsent() && std::ranges::find(receiving_, links.inbound.get()) == receiving_.end();
  if (is_new) receiving_.push_back(links.inbound.get());
  return problem;
}

void VerbsNetwork::deliverFailures() {
  for (const std::string& text : std::exchange(failures_, {})) {
    if (options_.fail) options_.fail(ncclRemoteError, text);
  }
}

// The Watcher.

bool VerbsNetwork::isPending() const {
  const auto isPending = [](const auto* link) { return link->isPending(); };
  return std::ranges::any_of(sending_, isPending) || std::ranges::any_of(receiving_, isPending);
}

VerbsNetwork::Visit VerbsNetwork::visit() {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn || depth_ != 0) return Visit::busy;
  if (!is_halted_) {
    arm();
    service();
    flushCredits();
    if (isPending()) return Visit::again;
  }
  watched_.store(true);
  return Visit::idle;
}

bool VerbsNetwork::isSettled() const {
  const auto isSettled = [](const auto* link) { return link->isSettled(); };
  return std::ranges::all_of(sending_, isSettled) && std::ranges::all_of(receiving_, isSettled);
}

bool VerbsNetwork::drain(std::chrono::steady_clock::time_point deadline) {
  constexpr auto kStep = std::chrono::milliseconds(1);
  for (;;) {
    {
      const std::lock_guard turn(turn_);
      if (is_halted_) return false;
      flushCredits();
      service();
      if (isSettled()) {
        for (SendingEnd* link : sending_) link->sayBye();
        has_ended_ = true;
        return true;
      }
    }
    if (VerbsClock::now() >= deadline) return false;
    sleep(kStep);
  }
}

void VerbsNetwork::retire(int peer) {
  retired_[static_cast<std::size_t>(peer)].store(true, std::memory_order_relaxed);
}

void VerbsNetwork::halt() {
  const std::lock_guard turn(turn_);
  is_halted_ = true;
  for (Pair& links : pairs_) {
    if (links.outbound == nullptr) continue;
    links.outbound->close();
    links.inbound->close();
  }
}

RdmaPorts findRdmaPorts(const RdmaSettings& settings) {
  auto found = std::make_shared<VerbsPorts>(findVerbsPorts(settings));
  RdmaPorts result{.ports = nullptr, .names = {}, .why_not = found->why_not};
  // What forbids queue pairs (limits of control groups, partition keys) is found while there is a choice yet.
  std::erase_if(found->ports, [&](const VerbsPort& port) {
    try {
      const QueuePairs tried(port, settings.queue_pairs, QueueDepth{.sends = 16, .receives = 16}, settings);
      return false;
    } catch (const Error& error) {
      result.why_not += (result.why_not.empty() ? "" : "; ") + std::string(error.what());
      return true;
    }
  });
  for (const VerbsPort& port : found->ports) {
    result.names += (result.names.empty() ? "" : ", ") + port.name();
  }
  if (!found->ports.empty()) result.ports = std::move(found);
  return result;
}

std::unique_ptr<RdmaNetwork> makeRdmaNetwork(const RdmaPorts& ports, RdmaOptions options) {
  return std::make_unique<VerbsNetwork>(ports.ports->ports, std::move(options));
}

}  // namespace tutti
