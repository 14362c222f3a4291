#include "transports/verbs/gids.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <tuple>

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

bool isAddressRange(const std::string& text) { return readRange(text).has_value(); }

std::optional<GidPair> chooseGids(std::span<const Gid> mine, std::span<const Gid> theirs,
                                  const GidRules& rules) {
  std::optional<GidPair> best;
  std::tuple<bool, bool, int> best_score;
  for (const Gid& a : mine) {
    if (!isAllowed(a, rules)) continue;
    for (const Gid& b : theirs) {
      if (a.type != b.type || isIpv4(a) != isIpv4(b) || isLinkLocal(a) != isLinkLocal(b)) continue;
      const std::tuple score(a.type != GidType::roce_v1, !isLinkLocal(a), commonPrefixBits(a, b));
      if (best && score <= best_score) continue;
      best_score = score;
      best = GidPair{.mine = a, .theirs = b, .common_bits = commonPrefixBits(a, b), .why = {}};
    }
  }
  if (!best) return best;
  const char* const how = rules.index                              ? "NCCL_IB_GID_INDEX"
                          : best->mine.type == GidType::infiniband ? "the port's own"
                          : isIpv4(best->mine)                     ? "IPv4, longest common prefix"
                                                                   : "IPv6, longest common prefix";
  best->why = fmt::format("{}, {} bits in common", how, best->common_bits);
  return best;
}

}  // namespace tutti
