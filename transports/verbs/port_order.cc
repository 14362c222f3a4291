#include "transports/verbs/port_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tutti {
namespace {

struct Candidate {
  PathClass path_class;
  Distance distance;  ///< finer than the class
  VerbsPort port;

  std::pair<PathClass, Distance> rank() const { return {path_class, distance}; }
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

const RdmaPlace* knownPlace(const VerbsPort& port, const std::vector<RdmaPlace>& places) {
  const auto named = std::ranges::find_if(places, [&port](const RdmaPlace& place) {
    return place.device == port.device->name() && place.port == port.number;
  });
  if (named != places.end()) return &*named;
  std::error_code error;
  const std::string bus_id =
      std::filesystem::canonical(port.device->folder() + "/device", error).filename().string();
  const auto on_card = std::ranges::find_if(places, [&](const RdmaPlace& place) {
    return !place.bus_id.empty() && place.bus_id == bus_id && place.port == port.number;
  });
  return error || on_card == places.end() ? nullptr : &*on_card;
}

PortOrder orderPorts(std::vector<VerbsPort>& ports, const RankPlace& rank,
                     const std::vector<RdmaPlace>& places) {
  std::vector<Candidate> candidates;
  for (VerbsPort& port : ports) {
    const HostPlace place = placeOfDevice(port.device->folder() + "/device");
    const Distance distance = distanceBetween(place, rank.place);
    const PathClass shown = pathClassOf(distance);
    const RdmaPlace* const known = knownPlace(port, places);
    const PathClass path_class = known == nullptr ? shown : known->path_class;
    candidates.push_back({path_class, places.empty() ? distance : Distance(), std::move(port)});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::rank);
  for (auto first = candidates.begin(); first != candidates.end();) {
    const auto end = std::ranges::find_if(
        first, candidates.end(), [&](const Candidate& other) { return other.rank() != first->rank(); });
    std::rotate(first, first + rank.local_rank % (end - first), end);
    first = end;
  }
  PortOrder order;
  std::vector<std::string> texts;
  ports.clear();
  for (Candidate& candidate : candidates) {
    if (candidate.rank() == candidates[0].rank()) ++order.nearest;
    const std::string how_far =
        places.empty() ? toText(candidate.distance.level) : std::string(name(candidate.path_class));
    texts.push_back(fmt::format("{} ({})", candidate.port.name(), how_far));
    ports.push_back(std::move(candidate.port));
  }
  if (!candidates.empty()) order.path_class = candidates[0].path_class;
  order.text = fmt::format("RDMA ports, those nearest to {} first{}: {}", rank.name,
                           places.empty() ? "" : ", by NCCL_TOPO_FILE", fmt::join(texts, ", "));
  if (order.nearest > 1)
    order.text += fmt::format("; local rank {} begins with {}", rank.local_rank, ports[0].name());
  return order;
}

}  // namespace tutti
