// How a queue pair goes from one port to another, once the addresses are chosen: judgement only, no calls.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/settings.h"
#include "transports/verbs/gids.h"

namespace tutti {

/// The larger of two packet sizes that both ports take: the smaller of theirs. Nothing where the peer's is
/// none.
std::optional<ibv_mtu> commonMtu(ibv_mtu mine, std::uint8_t theirs);

/// Whether packets carry a global header. RoCE always; InfiniBand between subnets, or where a port's manager
/// demands it: inside a subnet the LID is enough.
bool needsGlobalHeader(bool is_ethernet, bool is_demanded, const Gid& mine, const Gid& theirs);

/// Partition keys: 15 bits name the partition, the highest says full member. Ports talk if the partition is
/// the same, and one of them at least is a full member. Returns why they do not, in words; empty: they do.
std::string whyNotOnePartition(std::uint16_t mine, std::uint16_t theirs);

/// What users ask for about GIDs.
GidRules gidRulesOf(const RdmaSettings& settings);

}  // namespace tutti
