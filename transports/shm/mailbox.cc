#include "transports/shm/mailbox.h"

#include <fmt/format.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "tutti/error.h"

namespace tutti {
namespace {

/// What a letter says; the descriptor travels beside it.
struct Message {
  SegmentToken token;
  std::array<std::uint8_t, crypto_auth_BYTES> proof;  ///< of token, by the communicator's key
};
static_assert(crypto_auth_KEYBYTES == std::tuple_size_v<MailboxKey>);

/// Letters of strangers must not pile up memory: a communicator awaits few segments at a time.
constexpr std::size_t kMaxArrived = 256;

union ControlBuffer {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))> bytes;
};

[[noreturn]] void fail(const char* what, int error) {
  throw Error(ncclSystemError, fmt::format("{}: {} (errno {})", what, std::strerror(error), error));
}

std::pair<sockaddr_un, socklen_t> abstractAddress(const std::array<char, 16>& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = ::strnlen(name.data(), name.size());
  std::memcpy(address.sun_path + 1, name.data(), length);  // a leading zero byte makes it abstract
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

}  // namespace

Mailbox::Mailbox(const MailboxKey& key)
    : key_(key), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!socket_) fail("socket(AF_UNIX)", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int on = 1;
  // A bind with the family alone lets the kernel choose a free abstract name (unix(7), "autobind").
  if (::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) != 0) {
    fail("bind(AF_UNIX)", errno);
  }
  socklen_t length = sizeof(address);
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail("getsockname(AF_UNIX)", errno);
  }
  const std::size_t name = length - offsetof(sockaddr_un, sun_path) - 1;
  std::memcpy(address_.data(), address.sun_path + 1, std::min(name, address_.size() - 1));
}

void Mailbox::send(const PeerInfo& to, const Segment& segment, Deadline deadline) {
  Message message{.token = segment.token(), .proof = {}};
  crypto_auth(message.proof.data(), message.token.data(), message.token.size(), key_.data());

  auto [address, address_length] = abstractAddress(to.mailbox);
  iovec part{&message, sizeof(message)};
  ControlBuffer control{};
  msghdr header{};
  header.msg_name = &address;
  header.msg_namelen = address_length;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = segment.fd();
  std::memcpy(CMSG_DATA(entry), &fd, sizeof(fd));

  while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0) {
    const bool is_full = errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
    if (!is_full || std::chrono::steady_clock::now() >= deadline) {
      const int error = errno;
      throw Error(error == ECONNREFUSED ? ncclRemoteError : ncclSystemError,
                  fmt::format("handing shared memory to {}: {} (errno {})", describe(to),
                              is_full ? "its mailbox stays full" : std::strerror(error), error));
    }
    // Mailboxes are short (net.unix.max_dgram_qlen): who waits to send must go on receiving, or two wait for
    // each other.
    readOne();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Mailbox::readOne() {
  Message message{};
  iovec part{&message, sizeof(message)};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  const ssize_t got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  if (got < 0) return;

  UniqueFd fd;
  ucred sender{};
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr; entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level != SOL_SOCKET) continue;
    if (entry->cmsg_type == SCM_RIGHTS && entry->cmsg_len >= CMSG_LEN(sizeof(int))) {
      // The buffer holds one descriptor (and padding): whatever arrived becomes ours, and so is closed.
      int received = -1;
      std::memcpy(&received, CMSG_DATA(entry), sizeof(int));
      fd = UniqueFd(received);
      if (entry->cmsg_len >= CMSG_LEN(2 * sizeof(int))) {
        std::memcpy(&received, CMSG_DATA(entry) + sizeof(int), sizeof(int));
        const UniqueFd surplus(received);
      }
    } else if (entry->cmsg_type == SCM_CREDENTIALS && entry->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
      std::memcpy(&sender, CMSG_DATA(entry), sizeof(sender));
    }
  }
  const bool is_genuine =
      static_cast<std::size_t>(got) == sizeof(message) && fd && sender.pid > 0 &&
      crypto_auth_verify(message.proof.data(), message.token.data(), message.token.size(), key_.data()) == 0;
  if (is_genuine && arrived_.size() < kMaxArrived) {
    arrived_[message.token] = Letter{sender.pid, std::move(fd)};
  }
}

UniqueFd Mailbox::receive(const PeerInfo& from, const SegmentToken& token, Deadline deadline) {
  for (;;) {
    if (auto found = arrived_.find(token); found != arrived_.end()) {
      Letter letter = std::move(found->second);
      arrived_.erase(found);
      if (letter.pid == from.pid) return std::move(letter.fd);
      // Right key, wrong process: wait on for the right one.
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      throw Error(
          ncclRemoteError,
          fmt::format("{} did not hand over its shared memory in time (TUTTI_INIT_TIMEOUT)", describe(from)));
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now) + std::chrono::milliseconds(1);
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000))) > 0) {
      readOne();
    } else if (!isThere(from) && ::poll(&ready, 1, 0) == 0) {  // what it sent before it ended is read first
      throw Error(
          ncclRemoteError,
          fmt::format(
              "{} ended, or failed, before it handed over its shared memory. Look at its own output, or "
              "for the kernel's out-of-memory killer",
              describe(from)));
    }
  }
}

/// By a letter of no bytes, which is dropped there.
bool Mailbox::isThere(const PeerInfo& peer) const {
  const auto [address, length] = abstractAddress(peer.mailbox);
  return ::sendto(socket_.get(), nullptr, 0, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                  length) == 0 ||
         errno != ECONNREFUSED;
}

}  // namespace tutti
