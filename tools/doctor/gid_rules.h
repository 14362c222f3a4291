// The settings' rules for GIDs, as transports/verbs takes them.
#pragma once

#include "runtime/core/settings.h"
#include "transports/verbs/gids.h"

namespace tutti::doctor {

inline GidRules gidRulesOf(const RdmaSettings& settings) {
  GidRules rules{.range = settings.address_range};
  if (settings.gid_index >= 0) rules.index = static_cast<std::uint16_t>(settings.gid_index);
  if (settings.address_family == "AF_INET") rules.family = GidRules::Family::ipv4;
  if (settings.address_family == "AF_INET6") rules.family = GidRules::Family::ipv6;
  return rules;
}

}  // namespace tutti::doctor
