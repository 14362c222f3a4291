// Ranks on the two hosts of tests/softroce/guest. Host h has on rail r the device hHrR.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/harness/rank_group.h"

namespace tutti::test {

inline constexpr int kRdmaHosts = 2;

/// What tells ranks which devices their host has: `rails` of them.
inline std::map<int, Environment> rdmaDevicesOf(int nranks, int rails = 1) {
  std::map<int, Environment> environments;
  for (int rank = 0; rank < nranks; ++rank) {
    const std::string host = std::to_string(rank * kRdmaHosts / nranks);
    std::string devices = "=h" + host + "r0";
    for (int rail = 1; rail < rails; ++rail) devices += ",h" + host + "r" + std::to_string(rail);
    environments[rank] = {{"NCCL_IB_HCA", devices}};
  }
  return environments;
}

/// A busy guest takes its time to heal links.
inline Environment byRdma(Environment more = {}) {
  more.insert({"NCCL_NET", "IB"});
  more.insert({"NCCL_SOCKET_IFNAME", "lo"});
  more.insert({"TUTTI_NET_RECOVERY", "60"});
  return more;
}

/// Ranks on both hosts that have nothing but RDMA between them.
inline RankGroup rdmaRanks(int nranks, const std::vector<std::string>& arguments,
                           const Environment& more = {}, int rails = 1,
                           const std::string& program = "rank_program") {
  return {nranks,       [arguments](int) { return arguments; },
          byRdma(more), rdmaDevicesOf(nranks, rails),
          kRdmaHosts,   program};
}

}  // namespace tutti::test
