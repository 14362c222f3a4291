#include "tools/device/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace tutti::device {
namespace {

std::uint64_t readNumber(const std::string& path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : otherwise;
}

std::uint64_t readMemAvailable(std::uint64_t otherwise) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::uint64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return otherwise;
}

}  // namespace

std::uint64_t freeHostBytes() {
  constexpr auto kUnknown = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t available = readMemAvailable(kUnknown);
  const std::uint64_t limit = readNumber("/sys/fs/cgroup/memory.max", kUnknown);  // "max" reads as no number
  if (limit == kUnknown) return available;
  const std::uint64_t used = readNumber("/sys/fs/cgroup/memory.current", 0);
  return std::min(available, limit > used ? limit - used : 0);
}

}  // namespace tutti::device
