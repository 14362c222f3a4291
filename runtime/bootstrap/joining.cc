#include "runtime/bootstrap/joining.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/bootstrap/dial.h"
#include "runtime/bootstrap/joining_errors.h"
#include "runtime/bootstrap/rendezvous.h"
#include "runtime/process.h"
#include "transports/interfaces.h"
#include "transports/listener.h"
#include "transports/socket_address.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostStrangers = 8;
constexpr milliseconds kTick{100};     ///< for what has no descriptor to poll
constexpr seconds kCallTime{60};       ///< a child that joined answers within
constexpr seconds kLastWords{2};       ///< for telling the rendezvous of a failure
constexpr seconds kEarlier{5};         ///< than the ranks' deadline is that of their rendezvous
constexpr int kProbesPerSecond = 256;  ///< that a rendezvous gets from all its ranks
constexpr seconds kProbeTime{5};       ///< an unanswered probe is given up

class Joining {
 public:
  explicit Joining(const JoinTerms& terms) : terms_(terms) {
    self_.pid = ::getpid();
    ::gethostname(self_.host.data(), self_.host.size() - 1);
  }

  Joined make() {
    try {
      if (terms_.id.is_agreed && terms_.rank == 0) {
        openRendezvousAt(terms_.id, rendezvousTime());
      }
      join();
      awaitParent();
      connectChildren();
      report();
      return std::move(joined_);
    } catch (const Error& error) {
      tell(error);
      throw;
    }
  }

 private:
  std::string endpoint() const { return toText(terms_.id.address); }
  std::string name() const { return describeRank(terms_.rank, self_); }
  JoinNames names() const { return {name(), endpoint(), terms_.id.is_agreed}; }

  /// Sleeps until something may have come.
  void wait(std::vector<pollfd>& fds) {
    joined_.reception.addTo(fds);
    joined_.tree.addTo(fds);
    pollFor(fds, kTick);
  }

  // ── At the rendezvous ──

  /// Of the settings; empty where they leave the choice to the way to the rendezvous.
  std::vector<Interface> chosenInterfaces() const {
    const NetworkSettings& network = terms_.network;
    if (network.interfaces.empty() && network.family.empty()) return {};
    return chooseInterfaces(interfacesHere(), network).usable;
  }

  /// Settings that no interface here fits are mostly those of all ranks, of which the first to fail ends the
  /// rendezvous: then the own error says more than that nobody is there.
  SecureChannel reachRendezvous() {
    try {
      chosenInterfaces();
    } catch (const Error&) {
      try {
        return dialRendezvous(std::min(terms_.deadline, Clock::now() + kLastWords));
      } catch (const Error&) {
        // The one that follows counts.
      }
      throw;
    }
    return dialRendezvous(terms_.deadline);
  }

  /// Its deadline comes before those of the ranks, since it can say who is missing.
  milliseconds rendezvousTime() const {
    const auto left = std::chrono::duration_cast<milliseconds>(terms_.deadline - Clock::now());
    return left > 2 * kEarlier ? std::chrono::round<seconds>(left - kEarlier) : left / 2;
  }

  void join() {
    SecureChannel channel = reachRendezvous();
    try {
      listen(channel.fd());
    } catch (const Error& error) {
      channel.send(failedMessage(
          Error(ncclRemoteError,
                fmt::format("{} failed while the communicator was being made: {}", name(), error.what()))));
      channel.pump();
      throw;
    }
    const JoinMessage join{.nranks = terms_.nranks, .rank = terms_.rank, .where = self_};
    channel.send(message(MessageType::join, bytesOf(join)));
    is_expected_ = true;
    for (;;) {
      const bool is_open = channel.pump();
      if (const auto answer = channel.receive()) {
        if (typeOf(*answer) == MessageType::joined) break;
        is_told_ = true;
        throw readFailed(payloadOf(*answer));
      }
      if (!is_open) {
        throw BootstrapError(
            ncclRemoteError,
            fmt::format("lost the rendezvous at {}{}. Did the process that called ncclGetUniqueId end?",
                        endpoint(), channel.problem().empty() ? "" : ": " + channel.problem()),
            true);
      }
      requireTime("the rendezvous", "answer");
      std::vector<pollfd> fds{{channel.fd(), POLLIN, 0}};
      pollFor(fds, kTick);
    }
    Process::instance().log().write(
        LogLevel::info, terms_.rank,
        fmt::format("joined at the rendezvous {} as one of {} ranks; waits for the others at {}", endpoint(),
                    terms_.nranks, toText(self_.address)),
        LogSubsystem::bootstrap);
  }

  SecureChannel dialRendezvous(Clock::time_point deadline) {
    const NetAddress to =
        terms_.id.is_agreed ? terms_.id.address : withScopeHere(terms_.id.address, terms_.network);
    Dial dial({.to = to,
               .secret = terms_.id.secret,
               .deadline = deadline,
               .waits_for_listener = terms_.id.is_agreed});
    for (dial.pump(); !dial.established(); dial.pump()) {
      if (dial.failed()) throw rendezvousIsUnreachable(names(), dial);
      std::vector<pollfd> fds;
      dial.addTo(fds);
      pollFor(fds, dial.isPausing() ? milliseconds(20) : kTick);
    }
    return dial.take();
  }

  void listen(int rendezvous_fd) {
    NetAddress address = localAddress(rendezvous_fd);
    address.port = 0;
    if (const auto usable = chosenInterfaces(); !usable.empty()) {
      // The way to the rendezvous, when it is among them.
      const bool is_usable = std::ranges::find(usable, address, &Interface::address) != usable.end();
      if (!is_usable) address = usable.front().address;
    }
    const NetworkSettings& network = terms_.network;
    UniqueFd listener = listenOn(address, {network.first_port, network.last_port}, "TUTTI_PORT_RANGE");
    joined_.address = self_.address = address;
    joined_.reception = Reception(std::move(listener), terms_.id.secret, kMostStrangers);
  }

  // ── In the tree ──

  void awaitParent() {
    const int parent = treeParent(terms_.rank);
    std::optional<Probe> probe;
    auto next_probe = Clock::now() + probePause();
    while (!joined_.tree.has(parent)) {
      requireTime(parent == kRendezvous
                      ? "the rendezvous"
                      : fmt::format("the ranks that come before it (rank {} is next)", parent),
                  fmt::format("call it at {}", toText(self_.address)),
                  ". Perhaps not all ranks have joined, or a firewall blocks that port (TUTTI_PORT_RANGE)");
      std::vector<pollfd> fds;
      if (probe) probe->addTo(fds);
      wait(fds);
      receiveGuests();
      if (!probe && Clock::now() >= next_probe) {
        probe.emplace(terms_.id.address);
        next_probe = Clock::now() + kProbeTime;
      }
      if (!probe) continue;
      const auto answer = probe->answer();
      if (answer == Probe::Answer::refused) {
        is_told_ = true;  // or nobody is there to be told
        hearLastWords();
        throw rendezvousHasGone(names(), parent, self_.address);
      }
      if (answer == Probe::Answer::pending && Clock::now() < next_probe) continue;
      probe.reset();
      next_probe = Clock::now() + probePause();
    }
  }

  /// The rendezvous is gone. It may have called with the reason before, which then is on its way.
  void hearLastWords() {
    const auto end = Clock::now() + kProbeTime;
    receiveGuests();
    while (!joined_.reception.isEmpty() && Clock::now() < end) {
      std::vector<pollfd> fds;
      wait(fds);
      receiveGuests();
    }
  }

  /// About a second; more where many ranks ask.
  milliseconds probePause() const {
    const auto pause = milliseconds(1000) * std::max(1, terms_.nranks / kProbesPerSecond);
    return pause * 3 / 4 + milliseconds(randombytes_uniform(static_cast<std::uint32_t>(pause.count() / 2)));
  }

  /// Who calls here knows the secret: the parent, or the rendezvous with bad news.
  void receiveGuests() {
    for (Guest& guest : joined_.reception.attend()) {
      if (typeOf(guest.greeting) == MessageType::failed) {
        is_told_ = true;
        throw readFailed(payloadOf(guest.greeting));
      }
      if (typeOf(guest.greeting) != MessageType::table) continue;
      std::vector<RankAddress> table;
      TableMessage header;
      const bool is_table = readTable(payloadOf(guest.greeting), header, table);
      // Another rank's port, once: it is gone, as the caller sees when nobody answers under its name.
      if (is_table && header.to != terms_.rank) continue;
      const int parent = treeParent(terms_.rank);
      if (!is_table || header.nranks != terms_.nranks || header.from != parent || joined_.tree.has(parent)) {
        throw Error(ncclInternalError,
                    fmt::format("{} was called by rank {} of {}, but awaits rank {} as its parent", name(),
                                header.from, header.nranks, parent));
      }
      joined_.communicator_secret = header.communicator_secret;
      joined_.tree.setTable(std::move(table));
      joined_.tree.add(parent, std::move(guest.channel));
    }
  }

  struct Call {
    int child;
    Dial dial;
  };

  void connectChildren() {
    const auto children = treeChildren(terms_.rank, terms_.nranks);
    std::set<int> awaited(children.begin(), children.end());
    std::vector<Call> calls;
    for (const int child : children) {
      NetAddress to = joined_.tree.table()[static_cast<std::size_t>(child)].address;
      if (to.scope != 0) to.scope = joined_.address.scope;
      calls.push_back({child, Dial({.to = to,
                                    .secret = terms_.id.secret,
                                    .deadline = std::min(terms_.deadline, Clock::now() + kCallTime)})});
    }
    while (!awaited.empty()) {
      for (Call& call : calls) advance(call);
      requireTime(fmt::format("rank {}", fmt::join(awaited, ", ")), "answer");
      std::erase_if(calls, [this](const Call& call) { return joined_.tree.has(call.child); });
      std::vector<pollfd> fds;
      for (const Call& call : calls) call.dial.addTo(fds);
      wait(fds);
      receiveGuests();
      joined_.tree.pump();
      std::erase_if(awaited, [this](int child) { return isReady(child); });
    }
  }

  void advance(Call& call) {
    call.dial.pump();
    if (call.dial.failed()) {
      throw childIsLost(names(), joined_.tree.describe(call.child), self_,
                        joined_.tree.table()[static_cast<std::size_t>(call.child)], call.dial);
    }
    if (!call.dial.established()) return;
    joined_.tree.add(call.child, call.dial.take());
    joined_.tree.send(call.child, tableMessage({.from = terms_.rank,
                                                .to = call.child,
                                                .nranks = terms_.nranks,
                                                .communicator_secret = joined_.communicator_secret},
                                               joined_.tree.table()));
  }

  bool isReady(int child) {
    if (!joined_.tree.has(child)) return false;
    const auto received = joined_.tree.take(child);
    if (received && typeOf(*received) != MessageType::ready) {
      throw Error(ncclInternalError, fmt::format("{} sent an unknown message", joined_.tree.describe(child)));
    }
    if (!received) joined_.tree.requirePresent(child);
    return received.has_value();
  }

  /// Says that all is connected from here on. Rank 0 says it to the rendezvous, which has done its work: its
  /// listener is closed before it lets go, so nobody who joins again under the same address meets it.
  void report() {
    const int parent = treeParent(terms_.rank);
    joined_.tree.send(parent, message(MessageType::ready));
    joined_.tree.pump();
    if (parent != kRendezvous) return;
    const auto end = std::min(terms_.deadline, Clock::now() + kLastWords);
    while (!joined_.tree.hasEnded(kRendezvous) && Clock::now() < end) {
      std::vector<pollfd> fds;
      wait(fds);
      receiveGuests();
      joined_.tree.pump();
    }
    joined_.tree.remove(kRendezvous);
  }

  // ── When something fails ──

  void requireTime(const std::string& who, std::string_view what, std::string_view hint = "") const {
    if (terms_.check) terms_.check();
    if (Clock::now() < terms_.deadline) return;
    throw Error(ncclSystemError,
                fmt::format("{}: {} did not {} in time (TUTTI_INIT_TIMEOUT). The rendezvous is at {}{}",
                            name(), who, what, endpoint(), hint));
  }

  void tell(const Error& error) noexcept {
    joined_.tree.flood(error);
    if (joined_.tree.has(kRendezvous)) awaitRendezvousEnd();
    if (is_expected_ && !is_told_ && !joined_.tree.has(treeParent(terms_.rank))) tellRendezvous(error);
  }

  /// Rank 0's process often is the rendezvous's, too: it does not end before the others were told.
  void awaitRendezvousEnd() noexcept {
    const auto end = Clock::now() + kLastWords;
    while (!joined_.tree.hasEnded(kRendezvous) && Clock::now() < end) {
      std::vector<pollfd> fds;
      wait(fds);
      joined_.tree.write();
    }
  }

  void tellRendezvous(const Error& error) noexcept {
    try {
      Dial dial({.to = terms_.id.address, .secret = terms_.id.secret, .deadline = Clock::now() + kLastWords});
      for (dial.pump(); !dial.established() && !dial.failed(); dial.pump()) {
        std::vector<pollfd> fds;
        dial.addTo(fds);
        pollFor(fds, milliseconds(20));
      }
      if (!dial.established()) return;
      SecureChannel channel = dial.take();
      channel.send(failedMessage(error));
      channel.pump();
    } catch (const std::exception&) {
      // The rendezvous finds out by itself, later.
    }
  }

  const JoinTerms& terms_;
  RankAddress self_;
  Joined joined_;
  bool is_expected_ = false;  ///< at the rendezvous
  bool is_told_ = false;      ///< the rendezvous knows of the failure
};

}  // namespace

Joined joinTree(const JoinTerms& terms) { return Joining(terms).make(); }

}  // namespace tutti
