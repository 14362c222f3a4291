#include "tools/run/cores.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <string>
#include <tuple>

#include "tools/run/unique_fd.h"

namespace tutti::run {
namespace {

namespace fs = std::filesystem;

// One cpu_set_t ends at 1024 CPUs; Linux knows up to 8192.
using CoreSet = std::array<cpu_set_t, 8>;
constexpr int kMaxCores = CPU_SETSIZE * 8;

/// Where a CPU is, in numbers that are equal where the part is the same, and follow the CPUs' numbers.
struct CpuPlace {
  int thread = 0;  ///< of its core: how many siblings have lower numbers
  int node = 0;
  int cache = 0;  ///< the first CPU of the last-level cache
};

/// The numbers of a list such as "0-3,8-11".
std::vector<int> numbersIn(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<int> numbers;
  for (std::string range; std::getline(stream, range, ',');) {
    int first = 0;
    const char* const end = range.data() + range.size();
    const auto [at, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc{}) return {};
    int last = first;
    if (at != end && *at == '-') std::from_chars(at + 1, end, last);
    for (int number = first; number <= std::min(last, kMaxCores - 1); ++number) numbers.push_back(number);
  }
  return numbers;
}

int nodeOf(const fs::path& cpu) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cpu, error)) {
    const std::string name = entry.path().filename().string();
    int node = 0;
    const auto [end, problem] =
        std::from_chars(name.data() + std::min<std::size_t>(4, name.size()), name.data() + name.size(), node);
    if (name.starts_with("node") && problem == std::errc{} && end == name.data() + name.size()) return node;
  }
  return 0;
}

int cacheOf(const fs::path& cpu) {
  int first = 0;
  int highest = 0;
  for (int index = 0;; ++index) {
    const fs::path folder = cpu / "cache" / ("index" + std::to_string(index));
    const auto level = numbersIn(folder / "level");
    if (level.empty()) return first;
    const auto sharing = numbersIn(folder / "shared_cpu_list");
    if (sharing.empty() || level[0] <= highest) continue;
    highest = level[0];
    first = sharing[0];
  }
}

CpuPlace placeOfCpu(int number, const fs::path& system) {
  const fs::path cpu = system / "cpu" / ("cpu" + std::to_string(number));
  const auto siblings = numbersIn(cpu / "topology/thread_siblings_list");
  const auto thread = std::ranges::find(siblings, number);
  return {thread == siblings.end() ? 0 : static_cast<int>(thread - siblings.begin()), nodeOf(cpu),
          cacheOf(cpu)};
}

/// Equal parts of ranks for parts of the machine: rank r of n gets part r * parts / n.
std::vector<std::vector<int>> inBlocks(const std::vector<std::vector<int>>& parts, int ranks) {
  std::vector<std::vector<int>> result;
  for (int rank = 0; rank < ranks; ++rank) {
    result.push_back(parts[static_cast<std::size_t>(rank) * parts.size() / static_cast<std::size_t>(ranks)]);
  }
  return result;
}

}  // namespace

std::vector<int> allowedCores() {
  CoreSet set{};
  if (::sched_getaffinity(0, sizeof(set), set.data()) != 0) throw systemError("sched_getaffinity");
  std::vector<int> result;
  for (int core = 0; core < kMaxCores; ++core) {
    if (CPU_ISSET_S(static_cast<std::size_t>(core), sizeof(set), set.data())) result.push_back(core);
  }
  return result;
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

bool bindToCores(std::span<const int> cores) noexcept {
  CoreSet set{};
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), sizeof(set), set.data());
  return ::sched_setaffinity(0, sizeof(set), set.data()) == 0;
}

}  // namespace tutti::run
