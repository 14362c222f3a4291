// From facts to findings. Pure.
#pragma once

#include "tools/doctor/host/facts.h"
#include "tools/findings/finding.h"

namespace tutti::doctor {

Findings judge(const HostFacts& facts);

Findings judgeSettings(const HostFacts& facts);
Findings judgeNetwork(const NetworkFacts& facts, const NetworkSettings& settings);
Findings judgeRdma(const RdmaFacts& facts, const Settings& settings);
/// `has_rdma`: ports are used, so memory is locked for them.
Findings judgeLimits(const LimitFacts& facts, bool has_rdma);
Findings judgeIsolation(const IsolationFacts& facts);
Findings judgeGpu(const GpuFacts& facts, DeviceChoice wanted, bool has_rdma);
/// `matters`: there are devices, GPUs or RDMA, that could reach each other.
Findings judgePci(const PciFacts& facts, bool matters);

/// "1.5 GiB".
std::string bytesText(std::uint64_t bytes);

}  // namespace tutti::doctor
