#include "transports/tcp/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

SocketAddress socketAddress(const NetAddress& address) {
  SocketAddress result;
  if (address.family == NetAddress::Family::ipv4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(result.storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof(v4.sin_addr));
    result.length = sizeof(v4);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(result.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    v6.sin6_scope_id = address.scope;
    std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof(v6.sin6_addr));
    result.length = sizeof(v6);
  }
  return result;
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof(value));
}

}  // namespace

std::string describe(const NetAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.family == NetAddress::Family::ipv4) {
    ::inet_ntop(AF_INET, address.bytes.data(), text.data(), text.size());
    return fmt::format("{}:{}", text.data(), address.port);
  }
  if (address.family == NetAddress::Family::none) return "no address";
  ::inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  const std::string scope = address.scope != 0 ? fmt::format("%{}", address.scope) : "";
  return fmt::format("[{}{}]:{}", text.data(), scope, address.port);
}

UniqueFd dial(const NetAddress& address) {
  const SocketAddress to = socketAddress(address);
  UniqueFd socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 &&
      errno != EINPROGRESS) {
    const int error = errno;
    socket = {};
    errno = error;
  }
  return socket;
}

UniqueFd acceptFrom(int listener) {
  return UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void tune(int socket, std::chrono::milliseconds silence) {
  using std::chrono::seconds;
  const auto limit = std::clamp<std::chrono::milliseconds>(silence, seconds(1), seconds(30));
  const int limit_ms = static_cast<int>(limit.count());
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, limit_ms / 3000));
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, limit_ms / 3000));
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, limit_ms);
}

std::size_t unacknowledgedBytes(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace tutti
