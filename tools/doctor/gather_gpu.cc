#include <cstdlib>
#include <regex>

#include "tools/doctor/files.h"
#include "tools/doctor/gather.h"

namespace tutti::doctor {
namespace {

constexpr const char* kNvidia = "0x10de";

/// Display controllers: VGA and 3D.
bool isGpu(const std::filesystem::path& device) {
  const std::string kind = firstLine(device / "class");
  return firstLine(device / "vendor") == kNvidia &&
         (kind.starts_with("0x0300") || kind.starts_with("0x0302"));
}

}  // namespace

GpuFacts gatherGpu(DeviceChoice wanted) {
  GpuFacts facts;
  for (const auto& device : entriesOf("/sys/bus/pci/devices")) facts.pci_devices += isGpu(device) ? 1 : 0;
  const std::string version = firstLine("/proc/driver/nvidia/version");
  std::smatch number;
  if (std::regex_search(version, number, std::regex("[0-9]+\\.[0-9.]+"))) facts.driver = number.str();
  facts.is_open_driver = version.find("Open Kernel Module") != std::string::npos;
  facts.has_device_files = std::filesystem::exists("/dev/nvidia0");
  facts.has_peermem = !entriesOf("/sys/module/nvidia_peermem").empty();
  facts.is_emulated = std::getenv("TUTTI_EMULATED_GPUS") != nullptr;
  if (wanted != DeviceChoice::host) askCuda(facts);
  return facts;
}

}  // namespace tutti::doctor
