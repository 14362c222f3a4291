#include "transports/interfaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "runtime/core/interface_names.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Family = NetAddress::Family;

constexpr std::size_t kNoEntry = SIZE_MAX;

/// One entry of the list.
struct Rule {
  std::string text;
  bool is_exact = false;
  std::optional<NetAddress> network;
  unsigned network_bits = 0;
};

struct Rules {
  std::vector<Rule> rules;
  bool excludes = false;
};

bool liesIn(const NetAddress& address, const Rule& rule) {
  if (address.family != rule.network->family) return false;
  for (unsigned bit = 0; bit < rule.network_bits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
    if (((address.bytes[bit / 8] ^ rule.network->bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

Rule readRule(std::string_view text, bool is_exact, const std::string& whole) {
  Rule rule{.text = std::string(text), .is_exact = is_exact, .network = {}, .network_bits = 0};
  if (text.front() == '=') {
    rule.text.erase(0, 1);
    rule.is_exact = true;
  }
  const std::size_t slash = rule.text.find('/');
  if (slash == std::string::npos) return rule;
  rule.network = parseNumericHost(rule.text.substr(0, slash));
  const char* end = rule.text.data() + rule.text.size();
  const auto [stop, error] = std::from_chars(rule.text.data() + slash + 1, end, rule.network_bits);
  const unsigned most = rule.network && rule.network->family == Family::ipv6 ? 128 : 32;
  if (!rule.network || error != std::errc{} || stop != end || rule.network_bits > most) {
    throw Error(ncclInvalidUsage, fmt::format("NCCL_SOCKET_IFNAME=\"{}\": \"{}\" is not a network: expected "
                                              "one such as 10.0.0.0/8 or fd00::/8",
                                              whole, rule.text));
  }
  return rule;
}

Rules readRules(const std::string& text) {
  Rules result;
  std::string_view rest = text;
  bool is_exact = false;
  for (; !rest.empty() && (rest.front() == '^' || rest.front() == '='); rest.remove_prefix(1)) {
    (rest.front() == '^' ? result.excludes : is_exact) = true;
  }
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, comma);
    if (!entry.empty()) result.rules.push_back(readRule(entry, is_exact, text));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return result;
}

/// A name that an interface has means that one only: "eth1" is not also eth10.
void preferExactNames(Rules& rules, const std::vector<Interface>& all) {
  for (Rule& rule : rules.rules) {
    rule.is_exact = rule.is_exact || std::ranges::any_of(all, [&](const Interface& interface) {
                      return interface.name == rule.text;
                    });
  }
}

bool matches(const Rule& rule, const Interface& interface) {
  if (rule.network) return liesIn(interface.address, rule);
  return rule.is_exact ? interface.name == rule.text : interface.name.starts_with(rule.text);
}

/// The number of the first entry that matches.
std::size_t entryOf(const Rules& rules, const Interface& interface) {
  const auto found =
      std::ranges::find_if(rules.rules, [&](const Rule& rule) { return matches(rule, interface); });
  return found == rules.rules.end() ? kNoEntry : static_cast<std::size_t>(found - rules.rules.begin());
}

/// Why an address is not taken; "" when it may be.
std::string refusal(const Interface& interface, std::size_t entry, const Rules& rules,
                    const NetworkSettings& settings) {
  const Family wanted = settings.family == "AF_INET"    ? Family::ipv4
                        : settings.family == "AF_INET6" ? Family::ipv6
                                                        : interface.address.family;
  if (interface.address.family != wanted) return "NCCL_SOCKET_FAMILY wants the other family";
  if (!interface.is_up) return "down";
  const bool is_chosen_by_name = !rules.rules.empty() && !rules.excludes;
  if (rules.excludes && entry != kNoEntry) return "excluded by NCCL_SOCKET_IFNAME";
  if (is_chosen_by_name && entry == kNoEntry) return "not named by NCCL_SOCKET_IFNAME";
  if (!is_chosen_by_name && isBridgeOfContainers(interface.name)) {
    return "a bridge of containers, taken only when named";
  }
  return "";
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
  Rules rules = readRules(settings.interfaces);
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
                fmt::format("no network interface is left by NCCL_SOCKET_IFNAME=\"{}\" and "
                            "NCCL_SOCKET_FAMILY=\"{}\". Those of this host: {}",
                            settings.interfaces, settings.family, fmt::join(choice.reasons, "; ")));
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
