#include "transports/verbs/distance.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <system_error>

#include "runtime/core/system_files.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// "pci0000:3a".
bool isRootComplex(const std::string& name) {
  return name.starts_with("pci") && name.size() > 3 && std::isdigit(static_cast<unsigned char>(name[3])) != 0;
}

/// `list`: "0-3,8-11".
bool hasAnyOf(const cpu_set_t& cpus, const std::string& list) {
  return std::ranges::any_of(numbersOfList(list, CPU_SETSIZE - 1),
                             [&cpus](int cpu) { return CPU_ISSET(static_cast<std::size_t>(cpu), &cpus); });
}

/// "node12" -> 12.
int nodeNumber(const std::string& name) {
  const std::vector<int> number = numbersOfList(std::string_view(name).substr(4));
  return number.size() == 1 ? number[0] : -1;
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
  place.node = static_cast<int>(numberIn(real / "numa_node", -1));
  return place;
}

HostPlace placeOfCpus(const cpu_set_t& cpus, const fs::path& nodes) {
  std::set<int> found;
  for (const fs::path& entry : entriesOf(nodes)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with("node")) continue;
    if (hasAnyOf(cpus, firstLine(entry / "cpulist"))) found.insert(nodeNumber(name));
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

PathClass pathClassOf(const Distance& distance) {
  switch (distance.level) {
    case Distance::Level::same_switch:
      // A switch is two bridges on the way: one of its ports up, one down.
      return distance.bridges <= 2 ? PathClass::pix : PathClass::pxb;
    case Distance::Level::same_root:
    case Distance::Level::same_node:
      return PathClass::phb;
    case Distance::Level::other_node:
    case Distance::Level::unknown:
      break;
  }
  return PathClass::sys;
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
