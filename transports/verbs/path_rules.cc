#include "transports/verbs/path_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::uint16_t kFullMember = 0x8000;
constexpr std::size_t kSubnetBytes = 8;

}  // namespace

std::optional<ibv_mtu> commonMtu(ibv_mtu mine, std::uint8_t theirs) {
  if (theirs < IBV_MTU_256 || theirs > IBV_MTU_4096) return std::nullopt;
  return std::min(mine, static_cast<ibv_mtu>(theirs));
}

bool needsGlobalHeader(bool is_ethernet, bool is_demanded, const Gid& mine, const Gid& theirs) {
  if (is_ethernet || is_demanded) return true;
  return !std::equal(mine.bytes.begin(), mine.bytes.begin() + kSubnetBytes, theirs.bytes.begin());
}

std::string whyNotOnePartition(std::uint16_t mine, std::uint16_t theirs) {
  if (((mine ^ theirs) & ~kFullMember & 0xffff) != 0) {
    return fmt::format(
        "partition keys differ: {:#06x} here, {:#06x} there (NCCL_IB_PKEY is an index of the port's "
        "table; `cat /sys/class/infiniband/*/ports/*/pkeys/*`)",
        mine, theirs);
  }
  if (((mine | theirs) & kFullMember) != 0) return "";
  return fmt::format(
      "both ports are limited members of partition {:#06x}, and those may not talk to each other: one "
      "must be a full member (the subnet manager says who is)",
      mine);
}

GidRules gidRulesOf(const RdmaSettings& settings) {
  GidRules rules{.range = settings.address_range};
  if (settings.gid_index >= 0) rules.index = static_cast<std::uint16_t>(settings.gid_index);
  if (settings.address_family == "AF_INET") rules.family = GidRules::Family::ipv4;
  if (settings.address_family == "AF_INET6") rules.family = GidRules::Family::ipv6;
  return rules;
}

}  // namespace tutti
