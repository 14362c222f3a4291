#include "transports/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "tutti/error.h"

namespace tutti {
namespace {

using Family = NetAddress::Family;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// The resolver's own words.
std::string wordsOf(int error) { return error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error); }

}  // namespace

SocketAddress toSocketAddress(const NetAddress& address) {
  SocketAddress result;
  if (address.family == Family::ipv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.bytes.data(), sizeof(in.sin_addr));
    std::memcpy(&result.storage, &in, sizeof(in));
    result.length = sizeof(in);
  } else if (address.family == Family::ipv6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    in.sin6_scope_id = address.scope;
    std::memcpy(&in.sin6_addr, address.bytes.data(), sizeof(in.sin6_addr));
    std::memcpy(&result.storage, &in, sizeof(in));
    result.length = sizeof(in);
  }
  return result;
}

NetAddress toNetAddress(const sockaddr* address) {
  NetAddress result;
  if (address == nullptr) return result;
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof(in));
    result.family = Family::ipv4;
    result.port = ntohs(in.sin_port);
    std::memcpy(result.bytes.data(), &in.sin_addr, sizeof(in.sin_addr));
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof(in));
    result.family = Family::ipv6;
    result.port = ntohs(in.sin6_port);
    result.scope = in.sin6_scope_id;
    std::memcpy(result.bytes.data(), &in.sin6_addr, sizeof(in.sin6_addr));
  }
  return result;
}

NetAddress localAddress(int fd) {
  SocketAddress local;
  local.length = sizeof(local.storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local.storage), &local.length) != 0) return {};
  return toNetAddress(local.get());
}

NetAddress peerAddress(int fd) {
  SocketAddress peer;
  peer.length = sizeof(peer.storage);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) return {};
  return toNetAddress(peer.get());
}

std::string hostText(const NetAddress& address) {
  if (address.family == Family::none) return "(no address)";
  std::array<char, INET6_ADDRSTRLEN> host{};
  ::inet_ntop(address.family == Family::ipv4 ? AF_INET : AF_INET6, address.bytes.data(), host.data(),
              host.size());
  if (address.scope == 0) return host.data();
  std::array<char, IF_NAMESIZE> interface {};
  if (::if_indextoname(address.scope, interface.data()) != nullptr) {
    return fmt::format("{}%{}", host.data(), interface.data());
  }
  return fmt::format("{}%{}", host.data(), address.scope);
}

std::string toText(const NetAddress& address) {
  if (address.family == Family::ipv6) return fmt::format("[{}]:{}", hostText(address), address.port);
  return fmt::format("{}:{}", hostText(address), address.port);
}

std::optional<NetAddress> parseNumericHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  // The resolver also takes "10.1" for 10.0.0.1; people who write that mean something else.
  const bool is_complete = std::ranges::count(host, '.') == 3 || host.find(':') != std::string::npos;
  if (!is_complete || ::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, FreeAddresses> owner(found);
  return toNetAddress(found->ai_addr);
}

bool isLoopback(const NetAddress& address) {
  if (address.family == Family::ipv4) return address.bytes[0] == 127;
  std::array<std::uint8_t, 16> loopback{};
  loopback.back() = 1;
  return address.family == Family::ipv6 && address.bytes == loopback;
}

bool isLinkLocal(const NetAddress& address) {
  if (address.family == Family::ipv4) return address.bytes[0] == 169 && address.bytes[1] == 254;
  return address.family == Family::ipv6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

NetAddress anyAddress(const NetAddress& like) {
  return {.family = like.family, .port = like.port, .scope = 0, .bytes = {}};
}

NetAddress resolve(const HostAndPort& where, int family, std::string_view variable) {
  addrinfo hints{};
  hints.ai_family = parseNumericHost(where.host) ? AF_UNSPEC : family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(where.host.c_str(), nullptr, &hints, &found); error != 0) {
    throw Error(ncclSystemError,
                fmt::format("{}: the address of \"{}\"{} cannot be found: {}. Check the name, /etc/hosts and "
                            "DNS, or write the address as a number",
                            variable, where.host,
                            family == AF_INET    ? " for IPv4 (NCCL_SOCKET_FAMILY)"
                            : family == AF_INET6 ? " for IPv6 (NCCL_SOCKET_FAMILY)"
                                                 : "",
                            wordsOf(error)));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> owner(found);
  NetAddress result = toNetAddress(found->ai_addr);
  result.port = where.port;
  return result;
}

}  // namespace tutti
