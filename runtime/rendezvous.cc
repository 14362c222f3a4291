#include "runtime/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/bootstrap_messages.h"
#include "runtime/core/types.h"
#include "runtime/core/unique_fd.h"
#include "runtime/unique_id.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kProofTime = std::chrono::seconds(10);  ///< a connection must prove itself within
constexpr std::size_t kMaxStrangers = 128;             ///< unproved connections held at once; the oldest goes
constexpr auto kLinger = std::chrono::seconds(10);     ///< how long late ranks still hear of a failure

/// One connection. A member once it has joined with a rank.
struct Guest {
  Guest(UniqueFd socket, const Secret& secret)
      : channel(std::move(socket), secret, SecureChannel::Role::server), since(Clock::now()) {}

  SecureChannel channel;
  Clock::time_point since;
  std::optional<JoinMessage> join;
  std::optional<Bytes> gather;  ///< what it gave to the current round
  bool left = false;
  bool gone = false;

  std::string name() const {
    return fmt::format("rank {} (pid {} on {})", join->rank, join->pid, join->host.data());
  }
};

class Rendezvous {
 public:
  Rendezvous(UniqueFd listener, const Secret& secret, milliseconds init_timeout)
      : listener_(std::move(listener)), secret_(secret), init_timeout_(init_timeout) {}

  void serve() {
    while (!finished()) {
      pollOnce();
      for (auto& guest : guests_) attend(guest);
      dropStrangers();
      std::erase_if(members_, [](const auto& member) { return member.second->gone; });
      std::erase_if(guests_, [](const Guest& guest) { return guest.gone; });
      checkDeadline();
    }
    flush();
  }

 private:
  bool finished() const {
    if (failure_) {
      const bool all_told = refused_ >= nranks_ && std::ranges::none_of(guests_, [](const Guest& guest) {
                              return guest.join && guest.channel.wantsToWrite();
                            });
      return all_told || Clock::now() >= *deadline_ + kLinger;
    }
    return nranks_ > 0 && left_ == nranks_;
  }

  void pollOnce() {
    std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};
    for (const auto& guest : guests_) {
      const auto events = static_cast<short>(POLLIN | (guest.channel.wantsToWrite() ? POLLOUT : 0));
      fds.push_back({guest.channel.fd(), events, 0});
    }
    // Sleeps for good while nobody is here; else wakes for the deadlines below.
    ::poll(fds.data(), fds.size(), guests_.empty() && !deadline_ ? -1 : 100);
    if (fds[0].revents != 0) acceptAll();
  }

  void acceptAll() {
    for (;;) {
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        // Out of descriptors: the backlog keeps the connection until one is free.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(milliseconds(10));
        return;
      }
      guests_.emplace_back(std::move(socket), secret_);
    }
  }

  void attend(Guest& guest) {
    const bool alive = guest.channel.pump();
    while (const auto received = guest.channel.receive()) hear(guest, *received);
    if (alive) return;
    guest.gone = true;
    if (guest.join && !guest.left && !failure_) {
      fail(ncclRemoteError,
           fmt::format("{} left while the communicator was being made{}", guest.name(),
                       guest.channel.problem().empty() ? "" : ": " + guest.channel.problem()));
    }
  }

  void hear(Guest& guest, const Bytes& received) {
    switch (typeOf(received)) {
      case MessageType::join:
        return admit(guest, payloadOf(received));
      case MessageType::gather:
        if (guest.join && !failure_) {
          guest.gather = Bytes(payloadOf(received).begin(), payloadOf(received).end());
          finishRound();
        }
        return;
      case MessageType::fail:
        // The text names its rank already.
        if (guest.join && !failure_) fail(ncclRemoteError, textOf(payloadOf(received)));
        return;
      case MessageType::leave:
        if (guest.join && !guest.left) {
          guest.left = true;
          ++left_;
        }
        return;
      default:
        guest.gone = true;
    }
  }

  void admit(Guest& guest, std::span<const std::uint8_t> payload) {
    JoinMessage join;
    if (guest.join || payload.size() < sizeof(join.protocol_version)) {
      guest.gone = true;
      return;
    }
    std::memcpy(&join, payload.data(), std::min(payload.size(), sizeof(join)));
    join.host.back() = '\0';
    guest.join = join;
    if (failure_) return refuse(guest);
    if (join.protocol_version != kProtocolVersion) {
      return fail(
          ncclInvalidUsage,
          fmt::format("a rank speaks version {} of the bootstrap, the rendezvous version {}: all ranks must "
                      "load the same version of Tutti",
                      join.protocol_version, kProtocolVersion));
    }
    if (nranks_ == 0) {
      nranks_ = join.nranks;
      deadline_ = Clock::now() + init_timeout_;
    }
    if (join.nranks != nranks_) {
      return fail(ncclInvalidUsage,
                  fmt::format("the ranks disagree on their number: {} says {} ranks, {} says {}",
                              guest.name(), join.nranks, members_.begin()->second->name(), nranks_));
    }
    if (join.rank < 0 || join.rank >= nranks_) {
      return fail(ncclInvalidArgument,
                  fmt::format("{} is not one of ranks 0 to {}", guest.name(), nranks_ - 1));
    }
    if (const auto taken = members_.find(join.rank); taken != members_.end()) {
      return fail(ncclInvalidUsage,
                  fmt::format("two processes or threads joined as rank {}: pid {} on {} and pid "
                              "{} on {}. Every rank needs a number of its own",
                              join.rank, taken->second->join->pid, taken->second->join->host.data(), join.pid,
                              join.host.data()));
    }
    members_[join.rank] = &guest;
  }

  void finishRound() {
    const bool complete =
        static_cast<std::int32_t>(members_.size()) == nranks_ &&
        std::ranges::all_of(members_, [](const auto& member) { return member.second->gather.has_value(); });
    if (!complete) return;
    Bytes all;
    for (auto& [rank, guest] : members_) {
      all.insert(all.end(), guest->gather->begin(), guest->gather->end());
      guest->gather.reset();
    }
    const Bytes answer = message(MessageType::gathered, all);
    for (auto& [rank, guest] : members_) guest->channel.send(answer);
  }

  void fail(ncclResult_t code, const std::string& text) {
    failure_ = message(MessageType::refused, Bytes{static_cast<std::uint8_t>(code)});
    const auto bytes = bytesOf(text);
    failure_->insert(failure_->end(), bytes.begin(), bytes.end());
    deadline_ = Clock::now();
    for (auto& guest : guests_) {
      if (guest.join) refuse(guest);
    }
  }

  void refuse(Guest& guest) {
    guest.channel.send(*failure_);
    ++refused_;
  }

  void dropStrangers() {
    std::size_t strangers = 0;
    // Newest first, so that the oldest go when there are too many.
    std::for_each(guests_.rbegin(), guests_.rend(), [&](Guest& guest) {
      if (guest.join) return;
      if (++strangers > kMaxStrangers || Clock::now() - guest.since > kProofTime) guest.gone = true;
    });
  }

  void checkDeadline() {
    if (failure_ || !deadline_ || Clock::now() < *deadline_) return;
    std::vector<int> missing;
    for (int rank = 0; rank < nranks_; ++rank) {
      if (!members_.contains(rank)) missing.push_back(rank);
    }
    const auto seconds = std::chrono::duration<double>(init_timeout_).count();
    if (missing.empty()) {
      fail(ncclSystemError,
           fmt::format("making the communicator took longer than {} s (TUTTI_INIT_TIMEOUT)", seconds));
    } else {
      fail(ncclSystemError,
           fmt::format("{} of {} ranks did not come within {} s (TUTTI_INIT_TIMEOUT): rank {}. Were "
                       "they started, and with this unique id?",
                       missing.size(), nranks_, seconds, fmt::join(missing, ", ")));
    }
  }

  /// Sends what is still queued, briefly.
  void flush() {
    const auto end = Clock::now() + std::chrono::seconds(1);
    const auto isPending = [](Guest& guest) { return guest.channel.pump() && guest.channel.wantsToWrite(); };
    while (Clock::now() < end && std::ranges::count_if(guests_, isPending) > 0) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  UniqueFd listener_;
  Secret secret_;
  milliseconds init_timeout_;
  std::list<Guest> guests_;        ///< a list: members_ points into it
  std::map<int, Guest*> members_;  ///< by rank; those that are here
  std::int32_t nranks_ = 0;        ///< 0 until the first rank has joined
  std::int32_t left_ = 0;
  std::int32_t refused_ = 0;
  std::optional<Clock::time_point> deadline_;
  std::optional<Bytes> failure_;  ///< what every rank is told
};

UniqueFd listenOn(std::uint16_t& port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (listener) ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!listener || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), 512) != 0) {
    const int error = errno;
    throw Error(
        ncclSystemError,
        fmt::format("cannot listen on 127.0.0.1 port {}: {} (errno {}). {}", port, std::strerror(error),
                    error,
                    port != 0 ? "Choose another TUTTI_BOOTSTRAP_PORT, or 0 for any free port."
                              : "Check the loopback interface and the limit of open files (ulimit -n)."));
  }
  socklen_t length = sizeof(address);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

ncclUniqueId openRendezvous(std::uint16_t port, milliseconds init_timeout) {
  UniqueId id{.port = port, .address = {127, 0, 0, 1}};
  randombytes_buf(id.secret.data(), id.secret.size());
  auto rendezvous = std::make_unique<Rendezvous>(listenOn(id.port), id.secret, init_timeout);
  // Detached: it ends by itself, and a process that ends meanwhile needs nothing from it.
  std::thread([rendezvous = std::move(rendezvous)] { rendezvous->serve(); }).detach();
  return encode(id);
}

}  // namespace tutti
