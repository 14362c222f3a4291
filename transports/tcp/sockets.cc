#include "transports/tcp/sockets.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "transports/listener.h"

namespace tutti {
namespace {

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof(value));
}

}  // namespace

UniqueFd acceptFrom(int listener) {
  return UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void tune(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  keepAlive(socket);
}

void takePad(int socket) {
  std::array<std::byte, 64> rest;
  [[maybe_unused]] const ssize_t got = ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT);
}

void acknowledgeNow(int socket) { set(socket, IPPROTO_TCP, TCP_QUICKACK, 1); }

std::size_t unacknowledgedBytes(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace tutti
