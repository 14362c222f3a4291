// Networks, as users write them.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/core/net_address.h"

namespace tutti {

/// All addresses of one family whose first `bits` are those of `base`.
struct AddressRange {
  NetAddress base;
  unsigned bits = 0;

  bool contains(const NetAddress& address) const;
};

/// "10.0.0.0/8" or "fd00::/8"; an address alone is that one. Nothing where it is no such thing.
std::optional<AddressRange> parseAddressRange(std::string_view text);

}  // namespace tutti
