#include "runtime/topology/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/core/shared_library.h"

namespace tutti {
namespace {

// As nvml.h has them; its functions keep their layout for ever, newer ones have newer names.
using Device = struct nvmlDevice_st*;
using Result = int;
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  unsigned type;
  Result result;
  union {
    unsigned number;
    unsigned long long wide;
  } value;
};
constexpr unsigned kMostLinks = 36;  // what it knows ends earlier: an error then
constexpr int kSwitch = 2;
constexpr int kGpu = 0;
constexpr unsigned kC2cCount = 170;
constexpr unsigned kC2cStatus = 171;
constexpr unsigned kC2cMegabytes = 172;

struct Nvml {
  Result (*init)();
  Result (*shutdown)();
  const char* (*error_text)(Result);
  Result (*count)(unsigned*);
  Result (*device)(unsigned, Device*);
  Result (*pci)(Device, PciInfo*);
  Result (*capability)(Device, int*, int*);
  Result (*name)(Device, char*, unsigned);
  Result (*link_state)(Device, unsigned, unsigned*);
  Result (*remote_pci)(Device, unsigned, PciInfo*);
  Result (*remote_type)(Device, unsigned, int*);
  Result (*fields)(Device, int, FieldValue*);
};

Nvml find(SharedLibrary& library) {
  Nvml nvml{};
  library.find(nvml.init, "nvmlInit_v2");
  library.find(nvml.shutdown, "nvmlShutdown");
  library.find(nvml.error_text, "nvmlErrorString");
  library.find(nvml.count, "nvmlDeviceGetCount_v2");
  library.find(nvml.device, "nvmlDeviceGetHandleByIndex_v2");
  library.find(nvml.pci, "nvmlDeviceGetPciInfo_v3");
  library.find(nvml.capability, "nvmlDeviceGetCudaComputeCapability");
  library.find(nvml.name, "nvmlDeviceGetName");
  library.find(nvml.link_state, "nvmlDeviceGetNvLinkState");
  library.find(nvml.remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  library.findIfThere(nvml.remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  library.findIfThere(nvml.fields, "nvmlDeviceGetFieldValues");
  return nvml;
}

NvmlLink linkOf(const Nvml& nvml, Device device, unsigned number) {
  NvmlLink link;
  PciInfo pci{};
  if (nvml.remote_pci(device, number, &pci) == 0) link.bus_id = pci.bus_id;
  int type = -1;
  if (nvml.remote_type != nullptr && nvml.remote_type(device, number, &type) == 0) {
    if (type == kGpu) link.end = NvmlLink::End::gpu;
    if (type == kSwitch) link.end = NvmlLink::End::nvswitch;
  } else if (!link.bus_id.empty()) {
    link.end = NvmlLink::End::gpu;  // before there were switches, nobody was asked
  }
  return link;
}

/// 0 where the driver does not tell.
unsigned fieldOf(const Nvml& nvml, Device device, unsigned field, unsigned scope) {
  FieldValue value{};
  value.field = field;
  value.scope = scope;
  if (nvml.fields == nullptr || nvml.fields(device, 1, &value) != 0 || value.result != 0) return 0;
  return value.value.number;
}

void readC2c(const Nvml& nvml, Device device, NvmlGpu& gpu) {
  const unsigned count = std::min(fieldOf(nvml, device, kC2cCount, 0), kMostLinks);
  for (unsigned link = 0; link < count; ++link) {
    if (fieldOf(nvml, device, kC2cStatus, link) == 0) continue;
    ++gpu.c2c_count;
    gpu.c2c_gbytes_per_s = fieldOf(nvml, device, kC2cMegabytes, link) / 1000.0;
  }
}

NvmlGpu gpuOf(const Nvml& nvml, Device device, const PciInfo& pci) {
  NvmlGpu gpu{.bus_id = pci.bus_id};
  std::array<char, 96> name{};
  if (nvml.name(device, name.data(), static_cast<unsigned>(name.size() - 1)) == 0) gpu.model = name.data();
  int major = 0;
  int minor = 0;
  if (nvml.capability(device, &major, &minor) == 0) gpu.compute_capability = major * 10 + minor;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned is_up = 0;
    if (nvml.link_state(device, link, &is_up) == 0 && is_up != 0)
      gpu.links.push_back(linkOf(nvml, device, link));
  }
  readC2c(nvml, device, gpu);
  return gpu;
}

}  // namespace

NvmlView askNvml(const std::string& name) {
  SharedLibrary library({name.c_str()});
  const Nvml nvml = find(library);
  if (!library.problem().empty()) return {.gpus = {}, .problem = library.problem()};
  NvmlView view;
  const auto failed = [&](Result result, const std::string& call) {
    if (result != 0) view.problem = fmt::format("{}: {}", call, nvml.error_text(result));
    return result != 0;
  };
  if (failed(nvml.init(), "nvmlInit")) return view;
  unsigned count = 0;
  failed(nvml.count(&count), "nvmlDeviceGetCount");
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    PciInfo pci{};
    if (failed(nvml.device(index, &device), fmt::format("nvmlDeviceGetHandleByIndex({})", index))) continue;
    if (failed(nvml.pci(device, &pci), fmt::format("nvmlDeviceGetPciInfo of GPU {}", index))) continue;
    view.gpus.push_back(gpuOf(nvml, device, pci));
  }
  nvml.shutdown();
  return view;
}

}  // namespace tutti
