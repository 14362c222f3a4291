#include "tools/device/choice.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "runtime/core/environment.h"
#include "tools/device/cuda_devices.h"
#include "tools/device/plugin.h"
#include "tutti/error.h"

namespace tutti::device {
namespace {

constexpr const char* kSetting = "TUTTI_DEVICE";

/// As the launchers that tutti/launch.h lists name it.
constexpr std::array kLocalRanks{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                 "SLURM_LOCALID"};

Devices& use(Devices& devices) {
  ::setenv(kSetting, devices.kind() == Kind::cuda ? "cuda" : "host", 1);
  return devices;
}

/// nullptr, with *why, where there is no GPU that can be used.
Devices* findGpus(std::string* why) {
  const auto entry = pluginEntry<CudaDevicesEntry>("libtutti_programs_cuda.so", kCudaDevicesEntry, why);
  return entry == nullptr ? nullptr : entry(kPluginVersion, why);
}

}  // namespace

Choice parseChoice(const std::string& text) {
  if (text == "auto") return Choice::automatic;
  if (text == "host") return Choice::host;
  if (text == "cuda") return Choice::cuda;
  throw std::invalid_argument(text + " is not a device; there are: auto host cuda");
}

std::string choiceName(Choice choice) {
  switch (choice) {
    case Choice::automatic:
      return "auto";
    case Choice::host:
      return "host";
    case Choice::cuda:
      return "cuda";
  }
  return {};
}

Devices& chooseDevices(Choice choice) {
  const DeviceChoice given = readSettings(Environment::ofProcess()).device;
  const bool by_setting = choice == Choice::automatic && given != DeviceChoice::automatic;
  if (by_setting) choice = given == DeviceChoice::host ? Choice::host : Choice::cuda;
  if (choice == Choice::host) return use(hostDevices());
  std::string why;
  if (Devices* gpus = findGpus(&why); gpus != nullptr) return use(*gpus);
  if (choice == Choice::automatic) return use(hostDevices());
  const char* asked = by_setting ? "TUTTI_DEVICE=cuda" : "--device cuda";
  throw Error(ncclUnhandledCudaError,
              fmt::format("{}: no GPU can be used: {}. --device host works on host memory", asked, why));
}

int localRank() {
  for (const char* name : kLocalRanks) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const std::string_view value = text;
    int rank = 0;
    const auto [rest, error] = std::from_chars(value.begin(), value.end(), rank);
    if (error == std::errc{} && rest == value.end() && rank >= 0) return rank;
    throw Error(ncclInvalidUsage, fmt::format("{}={} is not the number of a process", name, value));
  }
  return 0;
}

}  // namespace tutti::device
