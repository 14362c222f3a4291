#include "bench/rank_info.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "bench/sizes.h"

namespace tutti::perf {
namespace {

/// RankInfo as it travels.
struct PackedInfo {
  std::uint64_t free_bytes;
  std::int32_t group;
  std::int32_t pid;
  std::int32_t device;
  std::int32_t unused;
  std::array<char, 64> host;
  std::array<char, 16> place;
  std::array<char, 64> name;
};

template <std::size_t kSize>
std::string textOf(const std::array<char, kSize>& text) {
  return std::string(text.data(), ::strnlen(text.data(), kSize));
}

template <std::size_t kSize>
void copyText(const std::string& from, std::array<char, kSize>& to) {
  std::memcpy(to.data(), from.data(), std::min(from.size(), kSize));
}

PackedInfo packedInfo(const device::Device& device, int group) {
  const device::DeviceInfo info = device.info();
  PackedInfo own{};
  own.free_bytes = info.free_bytes;
  own.group = group;
  own.pid = ::getpid();
  own.device = info.number;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  copyText(textOf(host), own.host);
  copyText(info.place, own.place);
  copyText(info.name, own.name);
  return own;
}

}  // namespace

std::vector<RankInfo> gatherRankInfo(std::span<const device::Seat> seats, int group,
                                     device::Exchange& exchange) {
  std::vector<PackedInfo> own;
  for (const device::Seat& seat : seats) own.push_back(packedInfo(seat.device(), group));
  std::vector<RankInfo> ranks;
  for (const PackedInfo& packed : exchange.gather<PackedInfo>(own)) {
    ranks.push_back({.group = packed.group,
                     .pid = packed.pid,
                     .host = textOf(packed.host),
                     .device = packed.device,
                     .place = textOf(packed.place),
                     .device_name = textOf(packed.name),
                     .free_bytes = packed.free_bytes});
  }
  return ranks;
}

std::size_t largestMessage(const std::vector<RankInfo>& ranks, int buffers) {
  struct Memory {
    std::uint64_t free_bytes = std::numeric_limits<std::uint64_t>::max();
    int ranks = 0;
  };
  std::map<std::pair<std::string, std::string>, Memory> memories;  // by host and GPU
  for (const RankInfo& info : ranks) {
    Memory& memory = memories[{info.host, info.place}];
    memory.free_bytes = std::min(memory.free_bytes, info.free_bytes);
    ++memory.ranks;
  }
  std::size_t largest = std::numeric_limits<std::size_t>::max();
  for (const auto& [name, memory] : memories) {
    largest = std::min(largest, largestMessage(memory.free_bytes, buffers, memory.ranks));
  }
  return largest;
}

}  // namespace tutti::perf
