// NCCL_SOCKET_IFNAME, as it is written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/address_range.h"

namespace tutti {

/// One entry of the list: a name, or a network.
struct InterfaceRule {
  std::string name;
  bool is_exact = false;  ///< else a prefix
  std::optional<AddressRange> network = std::nullopt;
};

struct InterfaceRules {
  std::vector<InterfaceRule> list;  ///< empty: nothing is asked for
  bool excludes = false;            ///< what the list names is not to be used
};

/// NAME, =NAME and ADDRESS/N, separated by commas, with ^ or = before all of them: transports/interfaces.h
/// has what they mean. Throws Error(ncclInvalidUsage), which names the variable.
InterfaceRules parseInterfaceRules(std::string_view text);

}  // namespace tutti
