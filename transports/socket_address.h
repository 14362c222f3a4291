// NetAddress as the socket calls want it, and as people read and write it.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/host_and_port.h"
#include "runtime/core/net_address.h"

namespace tutti {

/// What bind() and connect() take.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

SocketAddress toSocketAddress(const NetAddress& address);

/// Family `none` for a nullptr and for what is neither IPv4 nor IPv6.
NetAddress toNetAddress(const sockaddr* address);

/// Where this end of a bound or connected socket is; family `none` when it is neither.
NetAddress localAddress(int fd);
/// The same of the other end.
NetAddress peerAddress(int fd);

/// "10.0.0.5", "fd00::5", "fe80::5%eth0".
std::string hostText(const NetAddress& address);

/// "10.0.0.5:4711", "[fd00::5]:4711".
std::string toText(const NetAddress& address);

/// The inverse of hostText; nothing for host names and garbage. Port 0.
std::optional<NetAddress> parseNumericHost(const std::string& host);

bool isLoopback(const NetAddress& address);

/// Means something only together with an interface.
bool isLinkLocal(const NetAddress& address);

/// 0.0.0.0 or [::] of the same family, with the same port.
NetAddress anyAddress(const NetAddress& like);

/// The first address that the system's resolver knows of the host; `family`: AF_INET, AF_INET6 or AF_UNSPEC.
/// An address that is written as a number is taken whatever its family. Throws Error(ncclSystemError) that
/// names `variable` and holds the resolver's words.
NetAddress resolve(const HostAndPort& where, int family, std::string_view variable);

}  // namespace tutti
