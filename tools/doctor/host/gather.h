// Finds out what is to be known of this host. Nothing throws: what cannot be found out stays at its default,
// or is said in words. Single-threaded, and in this order: the trials with other processes fork.
#pragma once

#include "tools/doctor/host/facts.h"

namespace tutti::doctor {

/// Reads the environment, too.
HostFacts gather();

NetworkFacts gatherNetwork(const NetworkSettings& settings);
RdmaFacts gatherRdma(const RdmaSettings& settings);
LimitFacts gatherLimits(const LinkShape& shape);
IsolationFacts gatherIsolation();
GpuFacts gatherGpu(DeviceChoice wanted);
PciFacts gatherPci();

/// The ports that Tutti would use. Builds without RDMA have another one in its place.
void findUsablePorts(const RdmaSettings& settings, RdmaFacts& facts);

/// Bytes of locked memory for links by RDMA with that many ranks.
std::uint64_t lockedNeed(const LinkShape& shape, int peers);

/// Whether ACS of a PCI bridge, by its configuration of 4096 bytes, sends what goes from device to device up
/// to the root. `is_whole`: false where the extended part is missing.
bool redirectsPeers(const std::string& configuration, bool* is_whole);

}  // namespace tutti::doctor
