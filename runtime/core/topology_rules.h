// What a person said of how the topology is to be used. Equal on all ranks (compared when they meet).
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/path_class.h"

namespace tutti {

struct TopologyRules {
  /// NCCL_CROSS_NIC: may a ring leave a host by another NIC than it came in by.
  enum class CrossNic : std::uint8_t { no, yes, automatic };

  std::optional<PathClass> p2p_level = std::nullopt;  ///< GPUs farther apart do not use each other's memory
  std::optional<PathClass> rdma_level =
      std::nullopt;  ///< devices farther from a GPU do not reach into its memory
  CrossNic cross_nic = CrossNic::automatic;
  std::uint32_t least_channels = 0;  ///< bounds of lanes that are left open on GPUs; 0: none
  std::uint32_t most_channels = 0;

  friend bool operator==(const TopologyRules&, const TopologyRules&) = default;
};

}  // namespace tutti
