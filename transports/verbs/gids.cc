#include "transports/verbs/gids.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

constexpr std::array<std::uint8_t, 12> kIpv4Prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

const char* nameOf(GidType type) {
  switch (type) {
    case GidType::infiniband:
      return "InfiniBand";
    case GidType::roce_v1:
      return "RoCE v1";
    case GidType::roce_v2:
      return "RoCE v2";
  }
  return "unknown";
}

int commonPrefixBits(const Gid& a, const Gid& b) {
  for (std::size_t i = 0; i < a.bytes.size(); ++i) {
    const auto differing = static_cast<std::uint8_t>(a.bytes[i] ^ b.bytes[i]);
    if (differing != 0) return static_cast<int>(8 * i) + std::countl_zero(differing);
  }
  return 128;
}

NetAddress addressOf(const Gid& gid) {
  NetAddress address{.family = NetAddress::Family::ipv6, .bytes = gid.bytes};
  if (!isIpv4(gid)) return address;
  address = {.family = NetAddress::Family::ipv4};
  std::copy(gid.bytes.begin() + kIpv4Prefix.size(), gid.bytes.end(), address.bytes.begin());
  return address;
}

bool isAllowed(const Gid& gid, const GidRules& rules) {
  if (rules.index) return gid.index == *rules.index;
  if (gid.type == GidType::infiniband) return true;
  if (rules.family == GidRules::Family::ipv4 && !isIpv4(gid)) return false;
  if (rules.family == GidRules::Family::ipv6 && isIpv4(gid)) return false;
  return !rules.range || rules.range->contains(addressOf(gid));
}

}  // namespace

bool isIpv4(const Gid& gid) { return std::equal(kIpv4Prefix.begin(), kIpv4Prefix.end(), gid.bytes.begin()); }

bool isLinkLocal(const Gid& gid) { return gid.bytes[0] == 0xfe && (gid.bytes[1] & 0xc0) == 0x80; }

std::string toText(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (isIpv4(gid)) {
    ::inet_ntop(AF_INET, gid.bytes.data() + 12, text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, gid.bytes.data(), text.data(), text.size());
  }
  return fmt::format("{} ({}, index {})", text.data(), nameOf(gid.type), gid.index);
}

namespace {

/// The higher the better: whether it is no RoCE v1, and whether it is good beyond one network.
std::pair<bool, bool> rankOf(const Gid& gid) { return {gid.type != GidType::roce_v1, !isLinkLocal(gid)}; }

/// InfiniBand's subnets all have prefixes of their own, the common one being link-local in form.
bool canTalk(const Gid& a, const Gid& b) {
  if (a.type != b.type) return false;
  if (a.type == GidType::infiniband) return true;
  return isIpv4(a) == isIpv4(b) && isLinkLocal(a) == isLinkLocal(b);
}

}  // namespace

std::vector<Gid> allowedGids(std::span<const Gid> all, const GidRules& rules) {
  std::vector<Gid> allowed;
  std::ranges::copy_if(all, std::back_inserter(allowed),
                       [&](const Gid& gid) { return isAllowed(gid, rules); });
  std::ranges::stable_sort(allowed, std::greater{}, rankOf);
  return allowed;
}

std::optional<GidPair> chooseGids(std::span<const Gid> mine, std::span<const Gid> theirs) {
  std::optional<GidPair> best;
  for (const Gid& a : mine) {
    for (const Gid& b : theirs) {
      if (!canTalk(a, b)) continue;
      const int bits = commonPrefixBits(a, b);
      if (best && std::tuple(rankOf(a), bits) <= std::tuple(rankOf(best->mine), best->common_bits)) continue;
      best = GidPair{.mine = a, .theirs = b, .common_bits = bits, .why = {}};
    }
  }
  if (!best) return best;
  const Gid& chosen = best->mine;
  if (chosen.type == GidType::infiniband) {
    best->why = "InfiniBand";
  } else {
    const bool is_ipv4 = isIpv4(chosen);
    best->why = fmt::format("{}, {}{}, {} bits in common", nameOf(chosen.type),
                            isLinkLocal(chosen) ? "link-local " : "", is_ipv4 ? "IPv4" : "IPv6",
                            best->common_bits - (is_ipv4 ? 96 : 0));
  }
  return best;
}

}  // namespace tutti
