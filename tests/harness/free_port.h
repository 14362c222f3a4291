// A port for a program that is to listen on it a while later.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace tutti::test {

inline bool canListenOn(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_free =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && ::listen(fd, 1) == 0;
  ::close(fd);
  return is_free;
}

/// One that is free, with the one after it. Not of those that the kernel gives to whoever asks for any, as
/// other tests do meanwhile; and another for each process.
inline int freePort() {
  for (int tried = 0; tried < 100; ++tried) {
    const int port = 20'000 + (::getpid() * 2 + tried * 26) % 10'000;
    if (canListenOn(port) && canListenOn(port + 1)) return port;
  }
  throw std::runtime_error("no port is free");
}

}  // namespace tutti::test
