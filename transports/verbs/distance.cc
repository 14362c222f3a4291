#include "transports/verbs/distance.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// "pci0000:3a".
bool isRootComplex(const std::string& name) {
  return name.starts_with("pci") && name.size() > 3 && std::isdigit(static_cast<unsigned char>(name[3])) != 0;
}

std::string lineOf(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

int numberOf(const std::string& text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// `list`: "0-3,8-11".
bool hasAnyOf(const cpu_set_t& cpus, const std::string& list) {
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const int first = numberOf(range, 0);
    const std::size_t dash = range.find('-');
    const int last = dash == std::string::npos ? first : numberOf(range.substr(dash + 1), first);
    for (int cpu = first; cpu <= std::min(last, CPU_SETSIZE - 1); ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &cpus)) return true;
    }
  }
  return false;
}

}  // namespace

HostPlace placeOfDevice(const fs::path& folder) {
  HostPlace place;
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return place;
  for (const fs::path& part : real) {
    if (!place.path.empty() || isRootComplex(part.string())) place.path.push_back(part.string());
  }
  place.node = numberOf(lineOf(real / "numa_node"), -1);
  return place;
}

HostPlace placeOfCpus(const cpu_set_t& cpus, const fs::path& nodes) {
  std::set<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(nodes, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node")) continue;
    if (hasAnyOf(cpus, lineOf(entry.path() / "cpulist"))) found.insert(numberOf(name.substr(4), -1));
  }
  return {.path = {}, .node = found.size() == 1 ? *found.begin() : -1};
}

Distance distanceBetween(const HostPlace& a, const HostPlace& b) {
  const auto common = std::ranges::mismatch(a.path, b.path).in1 - a.path.begin();
  // What is last is the device itself.
  const auto bridges = [common](const HostPlace& place) {
    return std::max(0, static_cast<int>(std::ssize(place.path) - common) - 1);
  };
  if (common >= 2) return {Distance::Level::same_switch, bridges(a) + bridges(b)};
  if (common == 1) return {Distance::Level::same_root, 0};
  if (a.node < 0 || b.node < 0) return {};
  return {a.node == b.node ? Distance::Level::same_node : Distance::Level::other_node, 0};
}

const char* toText(Distance::Level level) {
  switch (level) {
    case Distance::Level::same_switch:
      return "same PCI switch";
    case Distance::Level::same_root:
      return "same PCI root complex";
    case Distance::Level::same_node:
      return "same NUMA node";
    case Distance::Level::other_node:
      return "another NUMA node";
    case Distance::Level::unknown:
      break;
  }
  return "distance unknown";
}

}  // namespace tutti
