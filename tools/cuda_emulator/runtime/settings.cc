#include "tools/cuda_emulator/runtime/settings.h"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "tools/cuda_emulator/machine/environment.h"
#include "tools/cuda_emulator/machine/memory_check.h"

namespace tutti::emulator {
namespace {

constexpr std::size_t kDefaultDeviceBytes = std::size_t{8} << 30;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<std::size_t> parseNumber(std::string_view text) {
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<int> visibleDevices() {
  const auto count = numberOf("TUTTI_EMULATED_GPUS", 1, kMaxDevices);
  std::vector<int> result;
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    result.resize(count);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  auto rest = variable("CUDA_VISIBLE_DEVICES");
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto device = parseNumber(rest.substr(0, comma));
    if (!device || *device >= count) break;  // CUDA, too, sees none from the first wrong one on
    result.push_back(static_cast<int>(*device));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return result;
}

/// FNV-1a over the boot's id and the name under which this host passes for several.
std::uint64_t machineHash() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  text += variable("NCCL_HOSTID");
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

Settings read() {
  warnOfUnknownVariables();
  Settings result;
  result.devices = visibleDevices();
  result.device_bytes = numberOf("TUTTI_EMULATED_GPU_BYTES", kDefaultDeviceBytes);
  result.peer_access = flagOf("TUTTI_EMULATED_PEER_ACCESS", true);
  result.host_nodes = flagOf("TUTTI_EMULATED_HOST_NODES", true);
  result.check_leaks = flagOf("TUTTI_EMULATOR_CHECK_LEAKS", false);
  result.machine = machineHash();
  memoryIsChecked();  // refuses a wrong value now, not at the first kernel
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings result = read();
  return result;
}

}  // namespace tutti::emulator
