// What the names of network interfaces tell.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tutti {

/// Such are taken only by whoever names them.
inline bool isBridgeOfContainers(std::string_view interface) {
  constexpr std::array<std::string_view, 4> kPrefixes{"docker", "virbr", "veth", "br-"};
  return std::ranges::any_of(kPrefixes,
                             [interface](std::string_view prefix) { return interface.starts_with(prefix); });
}

}  // namespace tutti
