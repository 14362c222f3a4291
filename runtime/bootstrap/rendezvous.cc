#include "runtime/bootstrap/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/bootstrap/dial.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/reception.h"
#include "transports/interfaces.h"
#include "transports/listener.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostStrangers = 40;
constexpr std::size_t kMostLateStrangers = 8;  ///< once all ranks have joined
constexpr std::size_t kMostCalls = 8;          ///< connections to joined ranks at once
constexpr seconds kLinger{10};                 ///< how long late ranks still hear of a failure
constexpr seconds kTellTime{8};                ///< for telling one rank of it, which may be slow to listen
constexpr seconds kProbeTime{5};               ///< an unanswered probe is given up
constexpr int kProbesPerSecond = 256;          ///< of all ranks together
constexpr seconds kRanksTime{10};              ///< ranks that are here know better what they wait for
constexpr seconds kCallTime{60};               ///< rank 0, which joined, answers within

class Rendezvous {
 public:
  Rendezvous(UniqueFd listener, const Secret& secret, const RendezvousTerms& terms)
      : reception_(std::move(listener), secret, kMostStrangers),
        secret_(secret),
        init_timeout_(terms.init_timeout),
        missing_text_(terms.missing_text) {}

  void serve() {
    while (!finished()) {
      pollOnce();
      for (Guest& guest : reception_.attend()) hear(guest);
      if (failure_) {
        tellAll();
        continue;
      }
      if (isComplete()) serveRoot();
      if (!failure_ && !isComplete()) probeMembers();
      checkDeadline();
    }
  }

 private:
  struct Visit {
    int rank;
    Probe probe;
    Clock::time_point until;
  };

  bool isComplete() const { return nranks_ > 0 && static_cast<int>(members_.size()) == nranks_; }

  bool finished() const {
    if (is_done_ || !failure_) return is_done_;
    return (nranks_ > 0 && told_ >= nranks_) || Clock::now() >= *deadline_ + kLinger;
  }

  void pollOnce() {
    std::vector<pollfd> fds;
    reception_.addTo(fds);
    if (call_root_) call_root_->addTo(fds);
    if (root_)
      fds.push_back({root_->fd(), static_cast<short>(POLLIN | (root_->wantsToWrite() ? POLLOUT : 0)), 0});
    for (const Dial& dial : last_calls_) dial.addTo(fds);
    for (const Visit& visit : visits_) visit.probe.addTo(fds);
    // Sleeps for good while nobody is here.
    const bool is_idle = nranks_ == 0 && reception_.isEmpty() && !failure_;
    pollFor(fds, is_idle ? std::chrono::hours(24) : milliseconds(50));
  }

  std::string name(int rank) const { return describeRank(rank, members_.at(rank)); }

  // ── Ranks that come ──

  void hear(Guest& guest) {
    const auto payload = payloadOf(guest.greeting);
    if (typeOf(guest.greeting) == MessageType::failed) {
      // The text names its rank already.
      if (!failure_) fail(readFailed(payload));
      return;
    }
    JoinMessage join;
    if (typeOf(guest.greeting) != MessageType::join || payload.size() < sizeof(join.protocol_version)) return;
    std::memcpy(&join, payload.data(), std::min(payload.size(), sizeof(join)));
    join.where.host.back() = '\0';
    if (!failure_) admit(join);
    if (failure_ && !members_.contains(join.rank)) ++told_;
    // It fits into an empty socket: nothing is left to write when the connection ends.
    guest.channel.send(failure_ ? *failure_ : message(MessageType::joined));
    guest.channel.pump();
  }

  void admit(const JoinMessage& join) {
    const std::string who = describeRank(join.rank, join.where);
    if (join.protocol_version != kProtocolVersion) {
      const std::string others =
          members_.empty() ? "" : fmt::format("{} and ", name(members_.begin()->first));
      return fail(
          {ncclInvalidUsage,
           fmt::format("rank {} (pid {}) speaks version {} of the bootstrap, {}the rendezvous version "
                       "{}: all ranks must load the same version of Tutti",
                       join.rank, join.where.pid, join.protocol_version, others, kProtocolVersion)});
    }
    if (nranks_ == 0) {
      if (join.nranks < 1 || join.nranks > kMaxRanks) {
        return fail({ncclInvalidArgument,
                     fmt::format("{} says {} ranks; 1 to {} may be", who, join.nranks, kMaxRanks)});
      }
      nranks_ = join.nranks;
      deadline_ = Clock::now() + init_timeout_;
    }
    if (join.nranks != nranks_) {
      return fail(
          {ncclInvalidUsage, fmt::format("the ranks disagree on their number: {} says {} ranks, {} says {}",
                                         who, join.nranks, name(members_.begin()->first), nranks_)});
    }
    if (join.rank < 0 || join.rank >= nranks_) {
      return fail({ncclInvalidArgument, fmt::format("{} is not one of ranks 0 to {}", who, nranks_ - 1)});
    }
    if (const auto taken = members_.find(join.rank); taken != members_.end()) {
      const RankAddress& first = taken->second;
      fail({ncclInvalidUsage,
            fmt::format("two processes or threads joined as rank {}: pid {} on {} and pid "
                        "{} on {}. Every rank needs a number of its own",
                        join.rank, first.pid, first.host.data(), join.where.pid, join.where.host.data())});
      return;
    }
    members_[join.rank] = join.where;
    next_visits_.emplace_back(Clock::now() + visitPause(), join.rank);
  }

  // ── While ranks are missing: those that wait are asked whether they are still there ──

  /// About a second; more where there are many.
  milliseconds visitPause() const { return milliseconds(1000) * std::max(1, nranks_ / kProbesPerSecond); }

  void probeMembers() {
    while (visits_.size() < kMostCalls && !next_visits_.empty() &&
           next_visits_.front().first <= Clock::now()) {
      const int rank = next_visits_.front().second;
      next_visits_.pop_front();
      visits_.push_back({rank, Probe(members_[rank].address), Clock::now() + kProbeTime});
    }
    for (auto visit = visits_.begin(); visit != visits_.end();) {
      const auto answer = visit->probe.answer();
      if (answer == Probe::Answer::refused) {
        const char* hint = hintAtFirewall(members_.at(visit->rank).address);
        return fail(lost(visit->rank, fmt::format("Connection refused{}", hint)));
      }
      const bool is_over = answer != Probe::Answer::pending || Clock::now() >= visit->until;
      if (is_over) next_visits_.emplace_back(Clock::now() + visitPause(), visit->rank);
      visit = is_over ? visits_.erase(visit) : std::next(visit);
    }
  }

  BootstrapError lost(int rank, const std::string& problem) const {
    return {
        ncclRemoteError,
        fmt::format(
            "{} left while the communicator was being made{}", name(rank),
            problem.empty() ? "" : fmt::format(" (at {}: {})", toText(members_.at(rank).address), problem)),
        true};
  }

  // ── When all are here: rank 0 gets the table and reports when the tree is complete ──

  void serveRoot() {
    visits_.clear();
    reception_.limit(kMostLateStrangers);
    if (!root_) return callRoot();
    const bool is_open = root_->pump();
    if (const auto received = root_->receive()) {
      if (typeOf(*received) == MessageType::failed) {
        return fail(readFailed(payloadOf(*received)));
      }
      // Closed before rank 0 goes on: no rank that joins another communicator here meets this one.
      reception_.takeListener();
      root_->send(message(MessageType::leave));
      root_->pump();
      is_done_ = true;
      return;
    }
    if (is_open) return;
    fail(lost(0, root_->problem()));
    root_.reset();
  }

  void callRoot() {
    if (!call_root_) {
      call_root_.emplace(Dial::Terms{.to = members_[0].address,
                                     .secret = secret_,
                                     .deadline = std::min(*deadline_, Clock::now() + kCallTime)});
    }
    call_root_->pump();
    if (call_root_->failed()) {
      const bool is_gone = call_root_->error() == ECONNREFUSED || call_root_->error() == 0;
      const auto text = fmt::format(
          "{} cannot be reached at {}: {}. Is there a way from the rendezvous to that "
          "interface (NCCL_SOCKET_IFNAME), and is the port open in firewalls "
          "(TUTTI_PORT_RANGE)?",
          name(0), toText(members_[0].address), call_root_->problem());
      fail(is_gone ? lost(0, call_root_->problem()) : BootstrapError(ncclSystemError, text));
      call_root_.reset();
      return;
    }
    if (!call_root_->established()) return;
    root_.emplace(call_root_->take());
    call_root_.reset();
    TableMessage header{.from = kRendezvous, .to = 0, .nranks = nranks_};
    randombytes_buf(header.communicator_secret.data(), header.communicator_secret.size());
    std::vector<RankAddress> table;
    table.reserve(members_.size());
    for (const auto& [rank, where] : members_) table.push_back(where);
    root_->send(tableMessage(header, table));
  }

  // ── The first failure ends it for all ──

  void fail(const Error& error) {
    failure_ = failedMessage(error);
    deadline_ = Clock::now();
    visits_.clear();
    // Rank 0 last: its process often is this one, and may end at once.
    for (const auto& [rank, where] : members_) untold_.push_front(rank);
  }

  /// Calls those that wait at their listeners. Who does not answer is gone, or hears it over the tree.
  void tellAll() {
    while (last_calls_.size() < kMostCalls && !untold_.empty()) {
      const int rank = untold_.front();
      if (rank == 0 && !last_calls_.empty()) break;
      untold_.pop_front();
      if (rank == 0 && root_) {
        tell(*root_);
        continue;
      }
      last_calls_.emplace_back(
          Dial::Terms{.to = members_[rank].address, .secret = secret_, .deadline = Clock::now() + kTellTime});
    }
    for (auto call = last_calls_.begin(); call != last_calls_.end();) {
      call->pump();
      if (!call->established() && !call->failed()) {
        ++call;
        continue;
      }
      if (call->established()) {
        SecureChannel channel = call->take();
        tell(channel);
      } else {
        ++told_;
      }
      call = last_calls_.erase(call);
    }
  }

  void tell(SecureChannel& channel) {
    channel.send(*failure_);
    channel.pump();
    ++told_;
  }

  void checkDeadline() {
    if (failure_ || is_done_ || !deadline_ || Clock::now() < *deadline_) return;
    std::vector<int> missing;
    for (int rank = 0; rank < nranks_; ++rank) {
      if (!members_.contains(rank)) missing.push_back(rank);
    }
    const auto limit = std::chrono::duration<double>(init_timeout_).count();
    if (missing.empty()) {
      if (Clock::now() < *deadline_ + kRanksTime) return;
      return fail({ncclSystemError, fmt::format("making the communicator took longer than {} s "
                                                "(TUTTI_INIT_TIMEOUT)",
                                                limit)});
    }
    if (missing_text_) return fail({ncclSystemError, missing_text_(missing)});
    fail({ncclSystemError,
          fmt::format("{} of {} ranks did not come within {} s (TUTTI_INIT_TIMEOUT): rank {}. "
                      "Were they started, and with this unique id?",
                      missing.size(), nranks_, limit, fmt::join(missing, ", "))});
  }

  Reception reception_;
  Secret secret_;
  milliseconds init_timeout_;
  std::function<std::string(const std::vector<int>&)> missing_text_;
  std::map<int, RankAddress> members_;  ///< by rank: those that have joined
  std::int32_t nranks_ = 0;             ///< 0 until the first rank has joined
  std::optional<Clock::time_point> deadline_;
  std::deque<std::pair<Clock::time_point, int>> next_visits_;  ///< when to probe which rank, in order of time
  std::list<Visit> visits_;
  std::optional<Dial> call_root_;
  std::optional<SecureChannel> root_;  ///< to rank 0, which makes the tree
  bool is_done_ = false;
  std::optional<Bytes> failure_;  ///< what every rank is told
  std::deque<int> untold_;
  std::list<Dial> last_calls_;
  std::int32_t told_ = 0;  ///< ranks that know of the failure, or cannot be told
};

void start(UniqueFd listener, const Secret& secret, const RendezvousTerms& terms) {
  auto rendezvous = std::make_unique<Rendezvous>(std::move(listener), secret, terms);
  // Detached: it ends by itself, and a process that ends meanwhile needs nothing from it.
  std::thread([rendezvous = std::move(rendezvous)] { rendezvous->serve(); }).detach();
}

NetAddress addressFor(const RendezvousTerms& terms, std::vector<std::string>* reasons) {
  if (terms.address) return *terms.address;
  if (terms.is_for_this_process) {
    return {.family = NetAddress::Family::ipv4, .port = 0, .scope = 0, .bytes = {127, 0, 0, 1}};
  }
  const InterfaceChoice choice = chooseInterfaces(interfacesHere(), terms.network);
  if (reasons != nullptr) *reasons = choice.reasons;
  return choice.usable.front().address;
}

/// Where to listen so that what the others were told leads here. A host's own name is often 127.0.1.1 to
/// itself, and an address that is translated on the way is none of this host's.
UniqueFd listenForAgreed(const NetAddress& agreed) {
  const std::array<std::uint8_t, 16> own_name{127, 0, 1, 1};
  const auto interfaces = interfacesHere();
  const bool is_here = std::ranges::any_of(interfaces, [&](const Interface& interface) {
    return interface.address.family == agreed.family && interface.address.bytes == agreed.bytes;
  });
  NetAddress address = agreed;
  if (agreed.bytes == own_name || !(is_here || isLoopback(agreed))) address = anyAddress(agreed);
  return listenOn(address, {}, "port in NCCL_COMM_ID, or MASTER_PORT");
}

}  // namespace

ncclUniqueId openRendezvous(const RendezvousTerms& terms, std::vector<std::string>* reasons) {
  UniqueId id{.address = addressFor(terms, reasons)};
  id.address.port = terms.port;
  UniqueFd listener =
      listenOn(id.address, {terms.network.first_port, terms.network.last_port}, "TUTTI_BOOTSTRAP_PORT");
  randombytes_buf(id.secret.data(), id.secret.size());
  start(std::move(listener), id.secret, terms);
  return encode(id);
}

void openRendezvousAt(const UniqueId& id, milliseconds init_timeout) {
  constexpr int kAttempts = 30;
  for (int attempt = 1;; ++attempt) {
    try {
      return start(listenForAgreed(id.address), id.secret, {.init_timeout = init_timeout});
    } catch (const Error&) {
      if (attempt == kAttempts) throw;
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
}

}  // namespace tutti
