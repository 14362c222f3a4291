// Which addresses two RDMA ports talk by.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/core/address_range.h"

namespace tutti {

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };

/// An entry of a port's table. Fixed layout: ranks tell each other.
struct Gid {
  std::array<std::uint8_t, 16> bytes{};  ///< in network byte order; IPv4 is mapped: ::ffff:10.0.0.1
  std::uint16_t index = 0;
  GidType type = GidType::roce_v2;
  std::uint8_t reserved = 0;

  friend bool operator==(const Gid&, const Gid&) = default;
};
static_assert(sizeof(Gid) == 20 && std::is_trivially_copyable_v<Gid>);

bool isIpv4(const Gid& gid);
/// fe80::/10: good on one network only.
bool isLinkLocal(const Gid& gid);
/// "10.77.0.1 (RoCE v2, index 1)".
std::string toText(const Gid& gid);

/// What users ask for.
struct GidRules {
  std::optional<std::uint16_t> index =
      std::nullopt;  ///< NCCL_IB_GID_INDEX: this entry of the own table, whatever it is
  enum class Family : std::uint8_t { any, ipv4, ipv6 } family = Family::any;
  std::optional<AddressRange> range = std::nullopt;  ///< NCCL_IB_ADDR_RANGE
};

struct GidPair {
  Gid mine;
  Gid theirs;
  int common_bits = 0;  ///< of their prefixes
  std::string why;      ///< for the log
};

/// Those of a port's table that the rules leave: RoCE v2 before v1, global before link-local; else in order.
std::vector<Gid> allowedGids(std::span<const Gid> all, const GidRules& rules);

/// The best pair of what each side allows: of one type (RoCE v2 before v1) and family, global before
/// link-local, then with the longest common prefix (the same subnet). Nothing where no entry of one table can
/// talk to one of the other.
std::optional<GidPair> chooseGids(std::span<const Gid> mine, std::span<const Gid> theirs);

}  // namespace tutti
