#include "transports/verbs/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace tutti {
namespace {

/// A descriptor that is none: a device that could take one says so.
bool takesDmaBuf(const VerbsDevice& device) {
  if (device.verbs().reg_dmabuf_mr == nullptr) return false;
  errno = 0;
  ibv_mr* const made = device.verbs().reg_dmabuf_mr(device.domain(), 0, 0, 0, -1, 0);
  if (made != nullptr) device.verbs().dereg_mr(made);
  return made != nullptr || (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS);
}

}  // namespace

GpuMemoryWays findGpuMemoryWays(std::span<const VerbsPort> ports) {
  GpuMemoryWays ways;
  for (const VerbsPort& port : ports) {
    const std::string& name = port.device->name();
    if (std::ranges::find(ways.dma_buf, name) == ways.dma_buf.end() && takesDmaBuf(*port.device))
      ways.dma_buf.push_back(name);
  }
  std::error_code none;
  ways.has_peer_memory = std::filesystem::exists("/sys/module/nvidia_peermem", none) ||
                         std::filesystem::exists("/sys/kernel/mm/memory_peers/nv_mem", none);
  return ways;
}

std::string toText(const GpuMemoryWays& ways, bool checksums) {
  const std::string dma_buf = ways.dma_buf.empty() ? "no device here registers memory by dma-buf"
                                                   : fmt::format("by dma-buf {} could register GPU memory",
                                                                 fmt::join(ways.dma_buf, ", "));
  return fmt::format(
      "data of GPUs goes to RDMA devices through pinned host memory, which is all that Tutti does so far{}; "
      "{}; "
      "nvidia-peermem is {}",
      checksums ? ", and what TUTTI_CHECKSUM=1 needs" : "", dma_buf,
      ways.has_peer_memory ? "loaded, so devices could register it directly" : "not loaded");
}

}  // namespace tutti
