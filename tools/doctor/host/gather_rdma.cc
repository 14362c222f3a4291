#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/host/gather.h"
#include "tools/doctor/system.h"

namespace tutti::doctor {
namespace {

namespace fs = std::filesystem;

/// "4: ACTIVE" -> "ACTIVE".
std::string stateIn(const fs::path& file) {
  const std::string line = firstLine(file);
  const std::size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

RdmaPort readPort(const fs::path& device, const fs::path& folder) {
  RdmaPort port{.name = fmt::format("{}:{}", device.filename().string(), folder.filename().string())};
  port.state = stateIn(folder / "state");
  port.rate = firstLine(folder / "rate");
  port.is_ethernet = firstLine(folder / "link_layer") == "Ethernet";
  if (!port.is_ethernet) return port;
  port.interface = firstLine(folder / "gid_attrs/ndevs/0");
  if (port.interface.empty()) port.interface = firstLine(device / "parent");  // Soft-RoCE without an address
  port.interface_mtu = static_cast<int>(numberIn(fmt::format("/sys/class/net/{}/mtu", port.interface), 0));
  return port;
}

bool hasDeviceFiles() {
  const auto entries = entriesOf("/dev/infiniband");
  return std::ranges::any_of(
      entries, [](const fs::path& path) { return path.filename().string().starts_with("uverbs"); });
}

}  // namespace

RdmaFacts gatherRdma(const RdmaSettings& settings) {
  RdmaFacts facts;
  for (const fs::path& device : entriesOf("/sys/class/infiniband")) {
    for (const fs::path& port : entriesOf(device / "ports")) facts.ports.push_back(readPort(device, port));
  }
  facts.has_device_files = hasDeviceFiles();
  findUsablePorts(settings, facts);
  return facts;
}

}  // namespace tutti::doctor
