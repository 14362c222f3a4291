#include "transports/verbs/port_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tutti {
namespace {

struct Candidate {
  Distance distance;
  VerbsPort port;
};

HostPlace placeOfOwnCpus(const std::filesystem::path& system) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return {};
  return placeOfCpus(cpus, system / "devices/system/node");
}

}  // namespace

RankPlace placeOfRank(const std::string& gpu, int local_rank, const std::filesystem::path& system) {
  RankPlace rank{.place = {}, .name = {}, .local_rank = local_rank};
  if (!gpu.empty()) {
    std::string entry = gpu;  // CUDA writes capitals
    std::ranges::transform(entry, entry.begin(), [](unsigned char c) { return std::tolower(c); });
    rank.place = placeOfDevice(system / "bus/pci/devices" / entry);
    rank.name = "GPU " + entry;
  }
  if (!rank.place.path.empty() || rank.place.node >= 0) return rank;
  rank.place = placeOfOwnCpus(system);
  rank.name =
      rank.place.node < 0 ? "this rank's CPUs" : fmt::format("the CPUs of NUMA node {}", rank.place.node);
  return rank;
}

PortOrder orderPorts(std::vector<VerbsPort>& ports, const RankPlace& rank) {
  std::vector<Candidate> candidates;
  for (VerbsPort& port : ports) {
    const HostPlace place = placeOfDevice(port.device->folder() + "/device");
    candidates.push_back({distanceBetween(place, rank.place), std::move(port)});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::distance);
  for (auto first = candidates.begin(); first != candidates.end();) {
    const auto end = std::ranges::find_if(
        first, candidates.end(), [&](const Candidate& other) { return other.distance != first->distance; });
    std::rotate(first, first + rank.local_rank % (end - first), end);
    first = end;
  }
  PortOrder order;
  std::vector<std::string> texts;
  ports.clear();
  for (Candidate& candidate : candidates) {
    if (candidate.distance == candidates[0].distance) ++order.nearest;
    texts.push_back(fmt::format("{} ({})", candidate.port.name(), toText(candidate.distance.level)));
    ports.push_back(std::move(candidate.port));
  }
  if (!candidates.empty()) order.path_class = pathClassOf(candidates[0].distance);
  order.text = fmt::format("RDMA ports, those nearest to {} first: {}", rank.name, fmt::join(texts, ", "));
  if (order.nearest > 1)
    order.text += fmt::format("; local rank {} begins with {}", rank.local_rank, ports[0].name());
  return order;
}

}  // namespace tutti
