#include "tools/run/cores.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "runtime/core/system_files.h"

namespace tutti::run {
namespace {

namespace fs = std::filesystem;

/// Where a CPU is, in numbers that are equal where the part is the same, and follow the CPUs' numbers.
struct CpuPlace {
  int thread = 0;  ///< of its core: how many siblings have lower numbers
  int node = 0;
  int cache = 0;  ///< the first CPU of the last-level cache
};

std::vector<int> cpusIn(const fs::path& file) { return numbersOfList(firstLine(file)); }

int nodeOf(const fs::path& cpu) {
  for (const fs::path& entry : entriesOf(cpu)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with("node")) continue;
    const std::vector<int> number = numbersOfList(std::string_view(name).substr(4));
    if (number.size() == 1) return number[0];
  }
  return 0;
}

int cacheOf(const fs::path& cpu) {
  int first = 0;
  int highest = 0;
  for (int index = 0;; ++index) {
    const fs::path folder = cpu / "cache" / ("index" + std::to_string(index));
    const auto level = static_cast<int>(numberIn(folder / "level", 0));
    if (level == 0) return first;
    const auto sharing = cpusIn(folder / "shared_cpu_list");
    if (sharing.empty() || level <= highest) continue;
    highest = level;
    first = sharing[0];
  }
}

CpuPlace placeOfCpu(int number, const fs::path& system) {
  const fs::path cpu = system / "cpu" / ("cpu" + std::to_string(number));
  const auto siblings = cpusIn(cpu / "topology/thread_siblings_list");
  const auto thread = std::ranges::find(siblings, number);
  return {thread == siblings.end() ? 0 : static_cast<int>(thread - siblings.begin()), nodeOf(cpu),
          cacheOf(cpu)};
}

/// Equal parts of ranks for parts of the machine: rank r of n gets part r * parts / n.
std::vector<std::vector<int>> inBlocks(const std::vector<std::vector<int>>& parts, int ranks) {
  std::vector<std::vector<int>> result;
  result.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    result.push_back(parts[static_cast<std::size_t>(rank) * parts.size() / static_cast<std::size_t>(ranks)]);
  }
  return result;
}

}  // namespace

BindTo bindByDefault(DeviceChoice device, bool has_gpus) {
  const bool is_on_host = device == DeviceChoice::host || (device == DeviceChoice::automatic && !has_gpus);
  return is_on_host ? BindTo::numa : BindTo::none;
}

std::vector<std::vector<int>> coresOfRanks(BindTo to, int ranks, const std::vector<int>& cpus,
                                           const fs::path& system) {
  using Key = std::tuple<int, int, int>;
  std::map<Key, std::vector<int>> groups;
  for (const int cpu : cpus) {
    const CpuPlace place = placeOfCpu(cpu, system);
    const Key key = to == BindTo::core    ? Key{place.thread, place.node, place.cache}
                    : to == BindTo::cache ? Key{0, place.node, place.cache}
                                          : Key{0, place.node, 0};
    groups[key].push_back(cpu);
  }
  std::vector<std::vector<int>> parts;
  for (const auto& [key, group] : groups) {
    if (to != BindTo::core) parts.push_back(group);
    for (const int cpu : group) {
      if (to == BindTo::core) parts.push_back({cpu});
    }
  }
  if (to != BindTo::core) return inBlocks(parts, ranks);
  std::vector<std::vector<int>> result;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    result.push_back(parts[rank % parts.size()]);
  }
  return result;
}

}  // namespace tutti::run
