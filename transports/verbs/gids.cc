#include "transports/verbs/gids.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
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

struct Range {
  Gid base;
  int bits = 0;
};

std::optional<Range> readRange(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string address = text.substr(0, slash);
  Range range;
  int width = 128;
  if (::inet_pton(AF_INET, address.c_str(), range.base.bytes.data() + 12) == 1) {
    std::ranges::copy(kIpv4Prefix, range.base.bytes.begin());
    width = 32;
  } else if (::inet_pton(AF_INET6, address.c_str(), range.base.bytes.data()) != 1) {
    return std::nullopt;
  }
  range.bits = width;
  if (slash != text.size()) {
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + slash + 1, end, range.bits);
    if (error != std::errc{} || last != end || range.bits < 0 || range.bits > width) return std::nullopt;
  }
  range.bits += 128 - width;
  return range;
}

bool isAllowed(const Gid& gid, const GidRules& rules) {
  if (rules.index) return gid.index == *rules.index;
  if (gid.type == GidType::infiniband) return true;
  if (rules.family == GidRules::Family::ipv4 && !isIpv4(gid)) return false;
  if (rules.family == GidRules::Family::ipv6 && isIpv4(gid)) return false;
  if (rules.range.empty()) return true;
  const auto range = readRange(rules.range);
  return range && commonPrefixBits(gid, range->base) >= range->bits;
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

bool isAddressRange(const std::string& text) { return readRange(text).has_value(); }

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
