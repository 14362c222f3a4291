#include "transports/verbs/verbs_network.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/verbs/port_order.h"
#include "tutti/error.h"

namespace tutti {
namespace {

// A poll looks at the awaited links' completions, which is no system call: some times, for about a
// microsecond, since whoever waits yields between two polls, which takes as long. From time to time it looks
// at all others, and at what devices and peers say, which are some. Credits that are owed but not due wait
// for a nap: nobody waits for them, and the rank that sends them is not looking meanwhile.
constexpr int kLooksPerPoll = 8;
constexpr std::uint64_t kPollsPerService = 256;

UniqueFd makeEventFd() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd) return fd;
  throw Error(ncclSystemError,
              fmt::format("eventfd: {} (errno {}). Raise the limit of open files (ulimit -n)",
                          std::strerror(errno), errno));
}

VerbsEvent readEvent(const VerbsDevice& device, const ibv_async_event& event) {
  VerbsEvent told;
  told.effect = effectOf(event.event_type);
  told.device = &device;
  std::string where = device.name();
  const bool is_ports = told.effect == EventEffect::port_lost || told.effect == EventEffect::port_back ||
                        told.effect == EventEffect::port_changed;
  if (is_ports) {
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

/// The ring's slots are so much longer than what they carry, and begin with it.
RdmaOptions withHeaderRoom(RdmaOptions options) {
  options.slot_bytes += kHeaderRoom;
  return options;
}

/// Data of slots lie behind the room for a header.
LinkView behindHeader(LinkView view) {
  view.data += kHeaderRoom;
  return view;
}

std::vector<bool> remoteOf(const std::vector<std::string>& peers) {
  std::vector<bool> is_remote;
  is_remote.reserve(peers.size());
  for (const std::string& peer : peers) is_remote.push_back(!peer.empty());
  return is_remote;
}

PortOrder order(std::vector<VerbsPort>& ports, const RdmaOptions& options) {
  const std::string gpu =
      options.gpus == nullptr ? "" : options.gpus->info(options.gpus->currentDevice()).bus_id.data();
  PortOrder order = orderPorts(ports, placeOfRank(gpu, options.local_rank, "/sys"), options.places);
  if (options.tell_path) options.tell_path(order.text);
  return order;
}

}  // namespace

VerbsNetwork::VerbsNetwork(std::vector<VerbsPort> ports, RdmaOptions options)
    : NetworkDriver(options, remoteOf(options.peers)),
      options_(withHeaderRoom(std::move(options))),
      ports_(std::move(ports)),
      order_(order(ports_, options_)),
      user_memory_({.in_place = options_.tell_path, .copied = options_.note}),
      faults_(options_.faults),
      connecting_(options_.note),
      letters_fd_(makeEventFd()),
      slots_(placeSlots(options_, ports_, order_.path_class, linkCount())),
      context_{
          .settings = options_.settings,
          .ports = ports_,
          .first_port = [this](int peer, std::uint32_t lane,
                               bool sends) { return firstPort(peer, lane, sends); },
          .user_memory = user_memory_,
          .connecting = connecting_,
          .gpu_slots = slots_.gpu.get(),
          .rank = options_.rank,
          .checksums = options_.checksums,
          .recovery = options_.recovery,
          .faults = faults_.isNone() ? nullptr : &faults_,
          .altered = altered(),
          .is_retired = [this](int peer) { return isRetired(peer); },
          .tell = [this](int peer, Letter letter) { tell_(peer, std::move(letter)); },
          .fail = [this](const std::string& text) { addFailure(text); },
          .note = options_.note,
          .tell_path = options_.tell_path,
      } {
  makeLinks(std::make_shared<LinkMemory>(linkCount(), options_.slot_count, options_.slot_bytes,
                                         slots_.gpu == nullptr ? nullptr : slots_.gpu->memory()),
            [&](int peer, std::uint32_t lane, const Side& in, const Side& out) {
              const VerbsLinkPeer who{
                  .rank = peer, .lane = lane, .name = options_.peers[static_cast<std::size_t>(peer)]};
              return Pair{std::make_unique<ReceivingEnd>(context_, behindHeader(in.view), in.memory, who),
                          std::make_unique<SendingEnd>(context_, behindHeader(out.view), out.memory, who)};
            });
  watchDevices();
}

std::size_t VerbsNetwork::firstPort(int peer, std::uint32_t lane, bool sends) const {
  const std::uint32_t channel = lane % options_.channels;
  const auto wanted = std::ranges::find_if(options_.ring_ports, [&](const RingPort& port) {
    return port.peer == peer && port.channel == channel && port.sends == sends;
  });
  if (wanted != options_.ring_ports.end()) {
    const auto port = std::ranges::find_if(
        ports_, [&wanted](const VerbsPort& own) { return knownPlace(own, {wanted->place}) != nullptr; });
    const auto first = static_cast<std::size_t>(port - ports_.begin());
    // Ranks in host memory have one ring, however many NICs and lanes there are: the other lanes take the
    // others.
    const std::size_t round = options_.gpus == nullptr ? lane / options_.channels : 0;
    if (first < order_.nearest) return (first + round) % order_.nearest;
    if (port != ports_.end()) return first;
  }
  return lane % order_.nearest;
}

void VerbsNetwork::watchDevices() {
  const auto watch = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
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

void VerbsNetwork::poll(int peer) {
  if (isHalted()) return;
  ++polls_;
  for (int looks = 0; looks < kLooksPerPoll && !look(peer); ++looks) {
  }
  if (polls_ % kPollsPerService == 0) service();
  deliverFailures();
}

/// True if something has come.
bool VerbsNetwork::look(int peer) {
  bool has_come = false;
  for (std::uint32_t lane = 0; hasLinks(peer) && lane < lanes(); ++lane) {
    Pair& links = pair(lane, peer);
    has_come = links.outbound->receive() || has_come;
    if (links.outbound->hasUnsent()) push(*links.outbound);
    has_come = links.inbound->receive() || has_come;
    if (links.inbound->owesCredits()) links.inbound->push(ReceivingEnd::Credits::while_waiting);
  }
  return has_come;
}

void VerbsNetwork::arm() {
  if (slots_.gpu != nullptr) slots_.gpu->arm();
  for (SendingEnd* link : sending()) link->arm();
  for (ReceivingEnd* link : receiving()) link->arm();
}

void VerbsNetwork::sayBye() {
  for (SendingEnd* link : sending()) link->sayBye();
}

// What devices and peers say.

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
      VerbsEvent told = readEvent(*device, event);
      device->verbs().ack_async_event(&event);
      takeDeviceEvent(std::move(told));
    }
  }
}

/// False where nothing changed that links would use. Else the text says what.
bool VerbsNetwork::reread(VerbsEvent& event) {
  const auto port = std::ranges::find_if(ports_, [&](const VerbsPort& port) {
    return port.device.get() == event.device && port.number == event.port;
  });
  const std::string changes = port == ports_.end() ? "" : rereadPort(*port, options_.settings);
  event.text += " " + changes;
  return !changes.empty();
}

void VerbsNetwork::takeDeviceEvent(VerbsEvent event) {
  if (event.effect == EventEffect::none) return;
  if (event.effect == EventEffect::port_changed && !reread(event)) return;
  if (event.effect == EventEffect::device_lost) {
    // Its descriptors would be readable for ever.
    for (const int fd : {event.device->channel()->fd, event.device->eventFd()})
      ::epoll_ctl(epoll(), EPOLL_CTL_DEL, fd, nullptr);
  }
  // Those of a connection's own are told with what became of it.
  if (event.effect != EventEffect::pairs_lost && options_.note) options_.note("RDMA " + event.text);
  for (SendingEnd* link : sending()) link->hear(event);
  for (ReceivingEnd* link : receiving()) link->hear(event);
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
  if (!hasLane(received.peer, 0)) return "there are no links with that rank";
  if (!hasLane(received.peer, head.lane)) return fmt::format("lane {} of {}", head.lane, lanes());
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
  if (!links.inbound->isAbsent()) use(*links.inbound);
  return problem;
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
