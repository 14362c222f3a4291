// Who a rank is: what it tells all others when it joins.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/core/net_address.h"
#include "runtime/core/plan.h"
#include "runtime/core/topology_rules.h"

namespace tutti {

/// Fixed layout, exchanged as bytes among ranks of the same Tutti version.
struct PeerInfo {
  std::int32_t rank = -1;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t start_time = 0;            ///< of the process, in clock ticks since boot
  std::uint64_t pid_namespace = 0;         ///< inode: pids compare only within one
  std::uint64_t net_namespace = 0;         ///< inode: abstract sockets connect only within one
  std::array<std::uint8_t, 16> boot_id{};  ///< of the kernel: equal on one host only
  std::array<std::uint8_t, 16>
      host_id{};  ///< of NCCL_HOSTID, or the boot id: ranks with equal ones share memory
  std::array<std::uint8_t, 16> process_token{};  ///< random, one per process
  std::array<char, 64> host{};                   ///< host name, zero-terminated
  std::array<char, 16> mailbox{};                ///< abstract Unix socket, zero-terminated; see shm/mailbox.h
  std::array<std::uint64_t, 16> cores{};         ///< bit c of the whole: may run on core c
  std::array<char, 16> gpu_bus_id{};             ///< zero-terminated, "0000:3b:00.0"; empty: host memory
  NetAddress listener;                           ///< where data connections from other hosts are accepted
  bool has_checksums = false;                    ///< of data on network links
  bool has_rdma = false;                         ///< a port that is up, and may be used
  bool needs_rdma = false;                       ///< NCCL_NET=IB: no other network will do
  LinkShape links;
  PlanOverrides plans;
  TopologyRules topology;
  std::uint64_t graph_file = 0;     ///< what NCCL_GRAPH_FILE holds, as a hash; 0: not set
  std::uint64_t topology_file = 0;  ///< the path in NCCL_TOPO_FILE, as a hash; 0: not set
};
static_assert(std::is_trivially_copyable_v<PeerInfo>);

/// "rank 2 (pid 4711 on node7)".
std::string describe(const PeerInfo& peer);

}  // namespace tutti
