#include "tools/topo/assumed_nvlinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr int kMostLinks = 1024;

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(
      "--assume-nvlink: " + why +
      "; expected all:COUNT (each GPU to one NVSwitch) or A-B:COUNT (between two GPUs), "
      "several separated by commas");
}

int numberOf(std::string_view text, std::string_view term) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0)
    refuse(fmt::format("'{}' in '{}' is no number", text, term));
  return number;
}

int countOf(std::string_view text, std::string_view term) {
  const int count = numberOf(text, term);
  if (count < 1 || count > kMostLinks)
    refuse(fmt::format("{} NVLinks in '{}': it can be 1 to {}", count, term, kMostLinks));
  return count;
}

void addTerm(std::string_view term, AssumedNvlinks& assumed) {
  const std::size_t colon = term.find(':');
  if (colon == std::string_view::npos) refuse(fmt::format("'{}' has no count", term));
  const std::string_view who = term.substr(0, colon);
  const int count = countOf(term.substr(colon + 1), term);
  if (who == "all") {
    if (assumed.per_gpu_to_switch > 0) refuse("'all' is given twice");
    assumed.per_gpu_to_switch = count;
    return;
  }
  const std::size_t dash = who.find('-');
  if (dash == std::string_view::npos) refuse(fmt::format("'{}' names no pair of GPUs", term));
  const int a = numberOf(who.substr(0, dash), term);
  const int b = numberOf(who.substr(dash + 1), term);
  if (a == b) refuse(fmt::format("'{}' links GPU {} to itself", term, a));
  const bool is_known = std::ranges::any_of(assumed.pairs, [&](const AssumedNvlinks::Pair& pair) {
    return (pair.a == a && pair.b == b) || (pair.a == b && pair.b == a);
  });
  if (is_known) refuse(fmt::format("the pair {}-{} is given twice", a, b));
  assumed.pairs.push_back({.a = a, .b = b, .count = count});
}

int gpuOf(const Topology& topology, int number, const std::string& host) {
  const std::vector<int> gpus = gpusInOrder(topology);
  for (const int gpu : gpus) {
    if (shortLabel(topology, gpu) == fmt::format("GPU {}", number)) return gpu;
  }
  throw std::invalid_argument(fmt::format("--assume-nvlink: {} has no GPU {}; it has {}", host, number,
                                          countWords(gpus.size(), "GPU")));
}

void addBothWays(Topology& topology, int a, int b, int count) {
  topology.nvlinks.push_back({.from = a, .to = b, .count = count});
  topology.nvlinks.push_back({.from = b, .to = a, .count = count});
}

}  // namespace

AssumedNvlinks parseAssumedNvlinks(const std::string& text) {
  AssumedNvlinks assumed;
  std::string_view rest = text;
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = rest.find(',');
    is_last = comma == std::string_view::npos;
    addTerm(rest.substr(0, comma), assumed);
    if (!is_last) rest.remove_prefix(comma + 1);
  }
  return assumed;
}

void addNvlinks(Topology& topology, const AssumedNvlinks& assumed, const std::string& host) {
  const std::vector<int> gpus = topology.all(TopologyKind::gpu);
  if (gpus.empty()) throw std::invalid_argument("--assume-nvlink: " + host + " has no GPUs");
  if (!topology.nvlinks.empty())
    throw std::invalid_argument("--assume-nvlink: " + host + " lists NVLinks itself; leave the option out");
  std::vector<AssumedNvlinks::Pair> nodes;
  for (const AssumedNvlinks::Pair& pair : assumed.pairs)
    nodes.push_back({gpuOf(topology, pair.a, host), gpuOf(topology, pair.b, host), pair.count});
  for (const AssumedNvlinks::Pair& pair : nodes) addBothWays(topology, pair.a, pair.b, pair.count);
  if (assumed.per_gpu_to_switch == 0) return;
  const int nvswitch = static_cast<int>(topology.nodes.size());
  topology.nodes.push_back({.kind = TopologyKind::nvswitch});
  for (const int gpu : gpus) addBothWays(topology, gpu, nvswitch, assumed.per_gpu_to_switch);
}

}  // namespace tutti::topo
