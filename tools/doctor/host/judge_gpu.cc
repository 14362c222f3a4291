// GPUs, and what stands between them and other devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/doctor/host/judge.h"

namespace tutti::doctor {
namespace {

constexpr const char* kArea = "GPUs";

std::string cudaText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Finding judgeNone(const GpuFacts& facts, DeviceChoice wanted) {
  // Some containers show no PCI bus.
  const bool has_some = facts.pci_devices > 0 || !facts.driver.empty() || facts.has_device_files;
  if (!has_some && wanted != DeviceChoice::cuda)
    return {Level::note, kArea, "devices", "none: communicators work on host memory"};
  if (facts.pci_devices > 0 && facts.driver.empty()) {
    return {
        Level::failure, kArea, "driver",
        fmt::format("{} NVIDIA device(s) on the PCI bus, but the driver is not loaded", facts.pci_devices),
        "install NVIDIA's driver, or load it: modprobe nvidia nvidia-uvm"};
  }
  if (facts.pci_devices > 0 && !facts.has_device_files) {
    return {Level::failure, kArea, "driver",
            fmt::format("driver {} is loaded, but there is no /dev/nvidia0", facts.driver),
            "containers: start them with --gpus all (nvidia-container-toolkit); hosts: nvidia-modprobe -u"};
  }
  return {Level::failure, kArea, "devices", fmt::format("none can be used: {}", facts.why_none),
          wanted == DeviceChoice::cuda ? "correct that, or unset TUTTI_DEVICE, for host memory"
                                       : "correct that; TUTTI_DEVICE=host says that it is meant so"};
}

/// How a network device gets at GPU memory.
Finding judgeGpuDirect(const GpuFacts& facts) {
  if (facts.has_peermem) return {Level::ok, kArea, "GPUDirect RDMA", "nvidia_peermem is loaded"};
  if (facts.is_open_driver)
    return {Level::ok, kArea, "GPUDirect RDMA",
            "the open driver offers dma-buf; nvidia_peermem is not needed"};
  return {Level::note, kArea, "GPUDirect RDMA",
          "neither nvidia_peermem nor the open driver (dma-buf): data goes through pinned host memory",
          "modprobe nvidia_peermem, or install the open kernel modules"};
}

Finding judgePeers(const GpuFacts& facts) {
  if (facts.without_peers.empty()) return {Level::ok, kArea, "peer access", "between all of them"};
  return {
      Level::note, kArea, "peer access",
      fmt::format("not between GPUs {}", fmt::join(facts.without_peers, "; ")),
      "their links go through pinned host memory. NVLink, or one PCIe switch, would allow it; see ACS below"};
}

}  // namespace

Findings judgeGpu(const GpuFacts& facts, DeviceChoice wanted, bool has_rdma) {
  if (facts.gpus.empty()) {
    if (wanted == DeviceChoice::host && facts.pci_devices > 0)
      return {{Level::note, kArea, "devices", "not looked at: TUTTI_DEVICE=host",
               "unset it where they should be used"}};
    return {judgeNone(facts, wanted)};
  }
  Findings findings;
  findings.push_back(
      {facts.is_emulated ? Level::note : Level::ok, kArea, "devices",
       fmt::format("{}: {}", facts.gpus.size(), fmt::join(facts.gpus, ", ")),
       facts.is_emulated ? "they are emulated (TUTTI_EMULATED_GPUS): for tests, not for speed" : ""});
  if (facts.driver_cuda != 0) {
    const std::string seen =
        fmt::format("{}CUDA {}, runtime {}", facts.driver.empty() ? "" : facts.driver + ", ",
                    cudaText(facts.driver_cuda), cudaText(facts.runtime_cuda));
    const bool is_old = facts.driver_cuda / 1000 < facts.runtime_cuda / 1000;
    findings.push_back(is_old ? Finding{Level::failure, kArea, "driver",
                                        seen + ": the driver is older than the runtime",
                                        "install a newer driver"}
                              : Finding{Level::ok, kArea, "driver", seen});
  }
  if (facts.gpus.size() > 1) findings.push_back(judgePeers(facts));
  findings.push_back(
      facts.ipc_problem.empty()
          ? Finding{Level::ok, kArea, "CUDA IPC", "another process opened GPU memory, and read it"}
          : Finding{Level::warning, kArea, "CUDA IPC", facts.ipc_problem,
                    "links between processes go through pinned host memory. Containers: "
                    "--ipc=host --pid=host; see that /proc/PID/fd can be read"});
  if (has_rdma && !facts.is_emulated) findings.push_back(judgeGpuDirect(facts));
  return findings;
}

Findings judgePci(const PciFacts& facts, bool matters) {
  constexpr const char* kPci = "PCI";
  if (!matters) return {};
  Findings findings;
  if (!facts.redirecting.empty()) {
    findings.push_back(
        {Level::warning, kPci, "ACS",
         fmt::format("on at {} bridge(s): {}. Traffic from device to device goes up to the root and "
                     "back, or is lost",
                     facts.redirecting.size(), fmt::join(facts.redirecting, ", ")),
         fmt::format("on bare metal: off in the firmware, or setpci -s {} ECAP_ACS+6.w=0000 for each",
                     facts.redirecting.front())});
  } else if (!facts.could_read) {
    findings.push_back(
        {Level::note, kPci, "ACS", "cannot be read by this user", "run tutti-doctor as root once"});
  } else {
    findings.push_back({Level::ok, kPci, "ACS", "no bridge sends traffic of devices to the root"});
  }
  const char* const mode = !facts.has_iommu       ? "off"
                           : facts.is_passthrough ? "on, passing through (iommu=pt)"
                                                  : "on, translating";
  const bool is_slow = facts.has_iommu && !facts.is_passthrough;
  findings.push_back(
      {is_slow ? Level::note : Level::ok, kPci, "IOMMU", mode,
       is_slow ? "on bare metal iommu=pt on the kernel's command line lets devices reach each other "
                 "at full speed; virtual machines need it as it is"
               : ""});
  return findings;
}

}  // namespace tutti::doctor
