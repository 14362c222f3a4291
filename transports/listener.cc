#include "transports/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kBacklog = 4096;  ///< the system's somaxconn cuts it

/// Empty with errno set when it cannot be.
UniqueFd tryListen(const NetAddress& address) {
  const SocketAddress where = toSocketAddress(address);
  UniqueFd socket(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  const int on = 1;
  // Connections of an earlier run that linger do not keep its port.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (where.family() == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  }
  // Two sockets may bind one port before either listens: listen() is what decides.
  if (::bind(socket.get(), where.get(), where.length) == 0 && ::listen(socket.get(), kBacklog) == 0) {
    return socket;
  }
  const int error = errno;
  socket = UniqueFd();
  errno = error;
  return {};
}

}  // namespace

UniqueFd listenOn(NetAddress& address, const PortRange& range, std::string_view port_setting) {
  const bool is_searched = address.port == 0 && range.first != 0;
  const int first = is_searched ? range.first : address.port;
  const int last = is_searched ? range.last : address.port;
  int error = 0;
  for (int port = first; port <= last; ++port) {
    address.port = static_cast<std::uint16_t>(port);
    if (UniqueFd socket = tryListen(address)) {
      address.port = localAddress(socket.get()).port;
      return socket;
    }
    error = errno;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  const auto failed = [&](std::string_view where, std::string_view remedy) {
    return Error(ncclSystemError, fmt::format("cannot listen on {} {}: {} (errno {}). {}", hostText(address),
                                              where, std::strerror(error), error, remedy));
  };
  if (is_searched && (error == EADDRINUSE || error == EACCES)) {
    throw failed(fmt::format("any port from {} to {} (TUTTI_PORT_RANGE)", first, last),
                 "Every rank of this host needs a port of its own: widen the range");
  }
  if (address.port != 0 && !is_searched) {
    throw failed(fmt::format("port {}", address.port),
                 fmt::format("Choose another {}{}", port_setting,
                             port_setting == "TUTTI_BOOTSTRAP_PORT" ? ", or 0 for any free port." : "."));
  }
  throw failed(fmt::format("port {}", address.port),
               "Check the interface (NCCL_SOCKET_IFNAME) and the limit of open files (ulimit -n).");
}

UniqueFd startConnect(const NetAddress& to, int* error) {
  const SocketAddress where = toSocketAddress(to);
  UniqueFd socket(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  *error = 0;
  if (socket && (::connect(socket.get(), where.get(), where.length) == 0 || errno == EINPROGRESS)) {
    return socket;
  }
  *error = errno;
  return {};
}

void keepAlive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

int connectResult(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return error;
  // A port of this host that nobody listens on may be given to the very socket that connects to it: it then
  // meets itself.
  return localAddress(fd) == peerAddress(fd) ? ECONNREFUSED : 0;
}

}  // namespace tutti
