#include "runtime/bootstrap.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/bootstrap_messages.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

UniqueFd connectTo(const UniqueId& id) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(id.port);
  std::memcpy(&address.sin_addr, id.address.data(), id.address.size());
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    const char* remedy = error == ECONNREFUSED
                             ? "The rendezvous of this unique id has ended: the process that called "
                               "ncclGetUniqueId is gone, or the "
                               "id was used before (an id serves one communicator)"
                             : "Check the loopback interface and the limit of open files (ulimit -n)";
    throw Error(error == ECONNREFUSED ? ncclRemoteError : ncclSystemError,
                fmt::format("connecting to the rendezvous at {}: {} (errno {}). {}", id.endpoint(),
                            std::strerror(error), error, remedy));
  }
  return socket;
}

}  // namespace

Bootstrap::Bootstrap(const UniqueId& id, int nranks, int rank, Deadline deadline)
    : endpoint_(id.endpoint()),
      nranks_(nranks),
      deadline_(deadline),
      channel_(connectTo(id), id.secret, SecureChannel::Role::client) {
  while (!channel_.established()) {
    requireOpen();
    pumpOnce();
  }
  JoinMessage join{.nranks = nranks, .rank = rank, .pid = ::getpid()};
  ::gethostname(join.host.data(), join.host.size() - 1);
  channel_.send(message(MessageType::join, bytesOf(join)));
}

void Bootstrap::pumpOnce() {
  const auto now = Clock::now();
  if (now >= deadline_) {
    // The rendezvous has the same deadline and knows who is missing; this is for when it is silent itself.
    throw Error(ncclSystemError,
                fmt::format("the rendezvous at {} did not answer in time (TUTTI_INIT_TIMEOUT)", endpoint_));
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - now).count() + 1;
  const auto events = static_cast<short>(POLLIN | (channel_.wantsToWrite() ? POLLOUT : 0));
  pollfd ready{channel_.fd(), events, 0};
  ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
  // What came before an end is still to be read, and may be the reason for it.
  ended_ = ended_ || !channel_.pump();
}

void Bootstrap::requireOpen() const {
  if (!ended_) return;
  throw Error(ncclRemoteError,
              fmt::format("lost the rendezvous at {}{}. Did the process that called ncclGetUniqueId end?",
                          endpoint_, channel_.problem().empty() ? "" : ": " + channel_.problem()));
}

Bytes Bootstrap::gatherBytes(std::span<const std::uint8_t> mine) {
  channel_.send(message(MessageType::gather, mine));
  for (;;) {
    if (const auto received = channel_.receive()) {
      const auto payload = payloadOf(*received);
      if (typeOf(*received) == MessageType::gathered) return {payload.begin(), payload.end()};
      if (typeOf(*received) == MessageType::refused && !payload.empty()) {
        throw Error(static_cast<ncclResult_t>(payload[0]), textOf(payload.subspan(1)));
      }
      throw Error(ncclInternalError, "the rendezvous sent an unknown message");
    }
    requireOpen();
    pumpOnce();
  }
}

void Bootstrap::requireSize(const Bytes& all, std::size_t expected) const {
  if (all.size() == expected) return;
  throw Error(ncclInternalError, fmt::format("the rendezvous at {} sent {} bytes where {} were expected",
                                             endpoint_, all.size(), expected));
}

void Bootstrap::deliver() noexcept {
  const auto end = Clock::now() + std::chrono::seconds(1);
  while (channel_.wantsToWrite() && Clock::now() < end && channel_.pump()) {
    pollfd ready{channel_.fd(), POLLOUT, 0};
    ::poll(&ready, 1, 10);
  }
}

void Bootstrap::fail(const std::string& text) noexcept {
  if (!channel_.established()) return;
  channel_.send(message(MessageType::fail, bytesOf(text)));
  deliver();
}

void Bootstrap::leave() noexcept {
  channel_.send(message(MessageType::leave));
  deliver();
}

}  // namespace tutti
