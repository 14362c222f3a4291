// How data of GPUs gets to RDMA devices, for people who wonder.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "transports/verbs/device.h"

namespace tutti {

/// What a host could do with GPU memory itself.
struct GpuMemoryWays {
  std::vector<std::string> dma_buf;  ///< devices that register memory which others export so
  bool has_peer_memory = false;  ///< the kernel has nvidia-peermem: devices register GPU memory as any other
};

/// Asks devices and kernel.
GpuMemoryWays findGpuMemoryWays(std::span<const VerbsPort> ports);

/// What is done, and what the host would allow. `checksums` are made by the CPU.
std::string toText(const GpuMemoryWays& ways, bool checksums);

}  // namespace tutti
