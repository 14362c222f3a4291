// How far devices are from each other, by what the system shows of PCI and NUMA.
#pragma once

#include <sched.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/path_class.h"

namespace tutti {

/// Where something is attached.
struct HostPlace {
  /// From the root complex: "pci0000:3a", "0000:3a:00.0", "0000:3b:00.0". Empty: unknown, or not by PCI.
  std::vector<std::string> path = {};
  int node = -1;  ///< NUMA; -1: unknown
};

/// Of a device: its folder of sysfs, or a link to that.
HostPlace placeOfDevice(const std::filesystem::path& folder);
/// Of CPUs; unknown where they are of several nodes. `nodes` is /sys/devices/system/node.
HostPlace placeOfCpus(const cpu_set_t& cpus, const std::filesystem::path& nodes);

struct Distance {
  enum class Level : std::uint8_t { same_switch, same_root, same_node, other_node, unknown };
  Level level = Level::unknown;
  int bridges = 0;  ///< same_switch: PCI bridges between, beside the common one

  /// The nearer the less.
  auto operator<=>(const Distance&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy itself
};
Distance distanceBetween(const HostPlace& a, const HostPlace& b);
/// In NCCL's words. What is not known is taken to be far.
PathClass pathClassOf(const Distance& distance);
/// "same PCI switch".
const char* toText(Distance::Level level);

}  // namespace tutti
