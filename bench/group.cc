#include "bench/group.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <type_traits>

#include "bench/sizes.h"

namespace tutti::perf {
namespace {

/// RankInfo as it travels: fixed size, whole int32 words.
struct PackedInfo {
  std::uint64_t free_bytes;
  std::int32_t pid;
  std::array<char, 68> host;
  std::array<char, 64> processor;
};
static_assert(std::is_trivially_copyable_v<PackedInfo> && sizeof(PackedInfo) == 144);

template <std::size_t kSize>
std::string textOf(const std::array<char, kSize>& text) {
  return std::string(text.data(), ::strnlen(text.data(), kSize));
}

template <std::size_t kSize>
void copyText(const std::string& from, std::array<char, kSize>& to) {
  std::memcpy(to.data(), from.data(), std::min(from.size(), kSize));
}

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(": ") + 2, line.size()));
  }
  return "CPU";
}

PackedInfo ownInfo() {
  PackedInfo own{};
  own.free_bytes = freeMemoryBytes();
  own.pid = ::getpid();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  copyText(textOf(host), own.host);
  copyText(processorName(), own.processor);
  return own;
}

}  // namespace

std::vector<double> gather(Comm& comm, double value) { return gather(comm, std::vector<double>{value}); }

std::vector<double> gather(Comm& comm, const std::vector<double>& values) {
  std::vector<double> all(values.size() * static_cast<std::size_t>(comm.size()));
  comm.allGather(values.data(), all.data(), values.size());
  return all;
}

std::vector<RankInfo> gatherRankInfo(Comm& comm) {
  const PackedInfo own = ownInfo();
  std::vector<PackedInfo> all(static_cast<std::size_t>(comm.size()));
  comm.allGather(&own, all.data(), sizeof(PackedInfo) / sizeof(std::int32_t), ncclInt32);
  std::vector<RankInfo> ranks;
  ranks.reserve(all.size());
  for (const PackedInfo& packed : all) {
    ranks.push_back({.pid = packed.pid,
                     .host = textOf(packed.host),
                     .processor = textOf(packed.processor),
                     .free_bytes = packed.free_bytes});
  }
  return ranks;
}

std::size_t largestMessage(const std::vector<RankInfo>& ranks, int buffers) {
  struct Host {
    std::uint64_t free_bytes = std::numeric_limits<std::uint64_t>::max();
    int ranks = 0;
  };
  std::map<std::string, Host> hosts;
  for (const RankInfo& info : ranks) {
    Host& host = hosts[info.host];
    host.free_bytes = std::min(host.free_bytes, info.free_bytes);
    ++host.ranks;
  }
  std::size_t largest = std::numeric_limits<std::size_t>::max();
  for (const auto& [name, host] : hosts) {
    largest = std::min(largest, largestMessage(host.free_bytes, buffers, host.ranks));
  }
  return largest;
}

}  // namespace tutti::perf
