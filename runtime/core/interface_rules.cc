#include "runtime/core/interface_rules.h"

#include <fmt/format.h>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

InterfaceRule parseRule(std::string_view entry, bool is_exact, std::string_view whole) {
  const bool is_marked = entry.front() == '=';
  const std::string_view name = is_marked ? entry.substr(1) : entry;
  InterfaceRule rule{.name = std::string(name), .is_exact = is_exact || is_marked};
  if (name.find('/') == std::string_view::npos) return rule;
  rule.network = parseAddressRange(name);
  if (!rule.network) {
    refuse({.name = "NCCL_SOCKET_IFNAME"}, whole,
           fmt::format("names of interfaces, and networks such as 10.0.0.0/8 or fd00::/8, with commas "
                       "between; \"{}\" is not a network",
                       name));
  }
  return rule;
}

}  // namespace

InterfaceRules parseInterfaceRules(std::string_view text) {
  InterfaceRules result;
  std::string_view rest = text;
  bool is_exact = false;
  for (; !rest.empty() && (rest.front() == '^' || rest.front() == '='); rest.remove_prefix(1)) {
    (rest.front() == '^' ? result.excludes : is_exact) = true;
  }
  for (const std::string_view entry : split(rest, ',')) {
    if (!entry.empty()) result.list.push_back(parseRule(entry, is_exact, text));
  }
  return result;
}

}  // namespace tutti
