// Where a process listens, as users write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

struct HostAndPort {
  std::string host;  ///< a name, or an address without brackets
  std::uint16_t port = 0;
};

/// Reads HOST:PORT or [IPv6]:PORT. Throws Error(ncclInvalidUsage) that names `variable`.
HostAndPort parseHostAndPort(std::string_view text, std::string_view variable);

}  // namespace tutti
