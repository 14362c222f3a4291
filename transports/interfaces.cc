#include "transports/interfaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>

#include "runtime/core/interface_names.h"
#include "runtime/core/interface_rules.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Family = NetAddress::Family;

constexpr std::size_t kNoEntry = SIZE_MAX;

/// A name that an interface has means that one only: "eth1" is not also eth10.
void preferExactNames(InterfaceRules& rules, const std::vector<Interface>& all) {
  for (InterfaceRule& rule : rules.list) {
    rule.is_exact = rule.is_exact || std::ranges::any_of(all, [&](const Interface& interface) {
                      return interface.name == rule.name;
                    });
  }
}

bool matches(const InterfaceRule& rule, const Interface& interface) {
  if (rule.network) return rule.network->contains(interface.address);
  return rule.is_exact ? interface.name == rule.name : interface.name.starts_with(rule.name);
}

/// The number of the first entry that matches.
std::size_t entryOf(const InterfaceRules& rules, const Interface& interface) {
  const auto found =
      std::ranges::find_if(rules.list, [&](const InterfaceRule& rule) { return matches(rule, interface); });
  return found == rules.list.end() ? kNoEntry : static_cast<std::size_t>(found - rules.list.begin());
}

bool isOfFamily(const Interface& interface, const NetworkSettings& settings) {
  const Family wanted = settings.family == "AF_INET"    ? Family::ipv4
                        : settings.family == "AF_INET6" ? Family::ipv6
                                                        : interface.address.family;
  return interface.address.family == wanted;
}

/// Why an address is not taken; "" when it may be.
std::string refusal(const Interface& interface, std::size_t entry, const InterfaceRules& rules,
                    const NetworkSettings& settings) {
  if (!isOfFamily(interface, settings)) return "NCCL_SOCKET_FAMILY wants the other family";
  if (!interface.is_up) return "down";
  const bool is_chosen_by_name = !rules.list.empty() && !rules.excludes;
  if (rules.excludes && entry != kNoEntry) return "excluded by NCCL_SOCKET_IFNAME";
  if (is_chosen_by_name && entry == kNoEntry) return "not named by NCCL_SOCKET_IFNAME";
  if (!is_chosen_by_name && isBridgeOfContainers(interface.name)) {
    return "a bridge of containers, taken only when named";
  }
  return "";
}

/// What to do where the settings leave no interface.
std::string remedy(const std::vector<Interface>& all, const NetworkSettings& settings) {
  std::vector<std::string_view> names;
  for (const Interface& interface : all) {
    if (interface.is_up && isOfFamily(interface, settings) &&
        std::ranges::find(names, interface.name) == names.end())
      names.push_back(interface.name);
  }
  if (!names.empty() && !settings.interfaces.empty())
    return fmt::format("Name one of {} in NCCL_SOCKET_IFNAME, or unset it", fmt::join(names, ", "));
  if (!names.empty()) return fmt::format("Name one of {} in NCCL_SOCKET_IFNAME", fmt::join(names, ", "));
  if (!settings.family.empty()) return "Unset NCCL_SOCKET_FAMILY, or give an interface such an address";
  return "Bring one up (ip link set NAME up)";
}

/// The variables that are set, as "NAME="value" and NAME="value"".
std::string chosenBy(const NetworkSettings& settings) {
  std::vector<std::string> set;
  if (!settings.interfaces.empty())
    set.push_back(fmt::format("NCCL_SOCKET_IFNAME=\"{}\"", settings.interfaces));
  if (!settings.family.empty()) set.push_back(fmt::format("NCCL_SOCKET_FAMILY=\"{}\"", settings.family));
  return set.empty() ? "" : fmt::format(" by {}", fmt::join(set, " and "));
}

}  // namespace

std::vector<Interface> interfacesHere() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    const int error = errno;
    throw Error(ncclSystemError, fmt::format("the network interfaces of this host cannot be listed: {} "
                                             "(errno {})",
                                             std::strerror(error), error));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<Interface> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const NetAddress address = toNetAddress(entry->ifa_addr);
    if (address.family == Family::none) continue;
    result.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_UP) != 0});
  }
  return result;
}

InterfaceChoice chooseInterfaces(const std::vector<Interface>& all, const NetworkSettings& settings) {
  InterfaceRules rules = parseInterfaceRules(settings.interfaces);
  preferExactNames(rules, all);
  struct Candidate {
    const Interface* interface;
    std::size_t entry;
    std::string refusal;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(all.size());
  for (const Interface& interface : all) {
    const std::size_t entry = entryOf(rules, interface);
    candidates.push_back({&interface, entry, refusal(interface, entry, rules, settings)});
  }
  const auto rank = [&](const Candidate& candidate) {
    const NetAddress& address = candidate.interface->address;
    return std::tuple(!candidate.refusal.empty(), candidate.entry, isLoopback(address),
                      isBridgeOfContainers(candidate.interface->name), address.family == Family::ipv6,
                      isLinkLocal(address));
  };
  std::ranges::stable_sort(candidates, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  InterfaceChoice choice;
  for (const Candidate& candidate : candidates) {
    const std::string& refused = candidate.refusal;
    choice.reasons.push_back(fmt::format("{} {}: {}", candidate.interface->name,
                                         hostText(candidate.interface->address),
                                         !refused.empty()        ? refused
                                         : choice.usable.empty() ? "chosen"
                                                                 : "usable, another comes first"));
    if (refused.empty()) choice.usable.push_back(*candidate.interface);
  }
  if (candidates.empty())
    throw Error(ncclSystemError, "this host has no network interface that is up, not even loopback");
  if (choice.usable.empty()) {
    throw Error(ncclInvalidUsage,
                fmt::format("no network interface is left{}. Those of this host: {}. {}", chosenBy(settings),
                            fmt::join(choice.reasons, "; "), remedy(all, settings)));
  }
  return choice;
}

NetAddress withScopeHere(NetAddress address, const NetworkSettings& settings) {
  if (address.family != Family::ipv6 || !isLinkLocal(address)) return address;
  const auto usable = chooseInterfaces(interfacesHere(), settings).usable;
  const auto found =
      std::ranges::find_if(usable, [](const Interface& interface) { return interface.address.scope != 0; });
  if (found != usable.end()) address.scope = found->address.scope;
  return address;
}

}  // namespace tutti
