// Where a socket is: an IPv4 or IPv6 address and a TCP port, as ranks tell each other.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

namespace tutti {

/// Fixed layout, sent as bytes among ranks of the same Tutti version.
struct NetAddress {
  enum class Family : std::uint16_t { none = 0, ipv4 = 4, ipv6 = 6 };

  Family family = Family::none;
  std::uint16_t port = 0;                ///< in host byte order
  std::uint32_t scope = 0;               ///< IPv6 link-local addresses: index of the interface here
  std::array<std::uint8_t, 16> bytes{};  ///< in network byte order; IPv4: the first four

  friend bool operator==(const NetAddress&, const NetAddress&) = default;
};
static_assert(sizeof(NetAddress) == 24 && std::is_trivially_copyable_v<NetAddress>);

}  // namespace tutti
