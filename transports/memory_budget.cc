#include "transports/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/error.h"

namespace tutti {
namespace {

std::optional<std::size_t> numberIn(const std::string& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (file >> number) return number;  // "max" (no limit) is no number
  return std::nullopt;
}

std::size_t systemAvailable() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  while (file >> key) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) return kib * 1024;
    std::getline(file, key);
  }
  return SIZE_MAX;
}

/// Page cache of the group that the kernel would give up first. It counts as used, but is there for the
/// taking.
std::size_t reclaimable(const std::string& stat_file, const std::string& wanted) {
  std::ifstream file(stat_file);
  std::string key;
  std::size_t value = 0;
  while (file >> key >> value) {
    if (key == wanted) return value;
  }
  return 0;
}

std::size_t groupAvailable(std::optional<std::size_t> limit, std::optional<std::size_t> used,
                           std::size_t cache) {
  if (!limit || !used) return SIZE_MAX;
  const std::size_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

std::size_t groupAvailableV2(const std::string& group) {
  return groupAvailable(numberIn(group + "/memory.max"), numberIn(group + "/memory.current"),
                        reclaimable(group + "/memory.stat", "inactive_file"));
}

std::size_t groupAvailableV1(const std::string& group) {
  return groupAvailable(numberIn(group + "/memory.limit_in_bytes"),
                        numberIn(group + "/memory.usage_in_bytes"),
                        reclaimable(group + "/memory.stat", "total_inactive_file"));
}

/// Path of this process's group below the mount of version 2, such as "/user.slice".
std::string groupPath() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "";
}

}  // namespace

std::size_t freeMemoryBytes() {
  const std::string root = "/sys/fs/cgroup";
  return std::min({systemAvailable(), groupAvailableV2(root + groupPath()), groupAvailableV2(root),
                   groupAvailableV1(root + "/memory")});
}

void requireFreeMemory(std::size_t bytes, std::string_view what, std::string_view remedy) {
  const std::size_t available = freeMemoryBytes();
  // A sixteenth stays free: a machine that is filled to the last page kills processes.
  if (bytes > available - available / 16) {
    throw Error(
        ncclSystemError,
        fmt::format("{}: {} bytes are needed, but only {} are free in this system or control group. {}", what,
                    bytes, available, remedy));
  }
}

}  // namespace tutti
