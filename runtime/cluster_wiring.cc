#include "runtime/cluster_wiring.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "runtime/core/cpu_affinity.h"
#include "runtime/cpu_binding.h"
#include "runtime/topology/notation.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// One rank of a host looks at it, for all.
void requireOneFilePerHost(const std::vector<PeerInfo>& peers, const RanksByHost& hosts) {
  for (const std::vector<int>& ranks : hosts) {
    const PeerInfo& first = peers[static_cast<std::size_t>(ranks[0])];
    for (const int rank : ranks) {
      const PeerInfo& peer = peers[static_cast<std::size_t>(rank)];
      if (peer.topology_file == first.topology_file) continue;
      throw Error(ncclInvalidUsage, fmt::format("NCCL_TOPO_FILE differs between {} and {}, which are on one "
                                                "host. Set it equally on all ranks of a host",
                                                describe(first), describe(peer)));
    }
  }
}

}  // namespace

ClusterWiring::ClusterWiring(Process& process, const Settings& settings, const WiringRequest& request,
                             Wiring& wiring)
    : process_(process),
      settings_(settings),
      request_(request),
      wiring_(wiring),
      graph_file_(readGraphFile(settings.graphs.file)) {}

void ClusterWiring::describe(PeerInfo& self) const {
  if (request_.gpus != nullptr) {
    const GpuInfo gpu = request_.gpus->info(request_.gpus->currentDevice());
    const std::string bus_id = busIdOf(gpu.bus_id.data()).value_or(gpu.bus_id.data());
    bus_id.copy(self.gpu_bus_id.data(), self.gpu_bus_id.size() - 1);
  }
  self.topology = settings_.topology;
  self.graph_file = graph_file_.hash();
  const std::string& path = settings_.topology_files.file;
  self.topology_file = path.empty() ? 0 : XXH3_64bits(path.data(), path.size()) | 1;
}

/// The first rank of a host tells what the host is made of.
TopologyDescription ClusterWiring::lookAtHost() const {
  if (wiring_.locals[0] != request_.rank) return {};
  const bool with_gpus = request_.gpus != nullptr;
  const Topology topology = process_.topology().get(settings_.topology_files, with_gpus, process_.log());
  TopologyDescription description =
      describeTopology(withoutPorts(topology, settings_.rdma.hca), wiring_.locals, wiring_.peers);
  if (settings_.topology_files.file.empty()) return description;
  for (const std::string& gpu : description.added) {
    process_.log().warnOnce(request_.rank, fmt::format("{} (NCCL_TOPO_FILE) lists no GPU with bus id {}. Is "
                                                       "the file that of another machine?",
                                                       settings_.topology_files.file, gpu));
  }
  return description;
}

void ClusterWiring::learn(Bootstrap& bootstrap, const RanksByHost& hosts) {
  requireOneFilePerHost(wiring_.peers, hosts);
  const TopologyDescription description = lookAtHost();
  const auto notices = bootstrap.allGather(description.notice);
  wiring_.cluster =
      exchangeTopologies(bootstrap, request_.rank, description.text, notices, hosts, wiring_.peers);
  const bool dumps = !settings_.graphs.dump_file.empty() && settings_.graphs.dump_rank == request_.rank;
  wiring_.found = process_.rings().find(wiring_.cluster, settings_.topology, graph_file_,
                                        dumps ? TreeUse::dumped : TreeUse::none);
  wiring_.rings = ringTables(wiring_.found);
  digest_ = digestOf(wiring_.found);
  dump();
  sayRings();
  bindNear();
}

LinkShape ClusterWiring::withLanes(LinkShape shape) const {
  if (shape.on_gpu && shape.lanes == 0) shape.lanes = lanesFor(wiring_.found, settings_.topology);
  return shape;
}

void ClusterWiring::bindNear() {
  const auto [shape, seat] = seatOf(*wiring_.cluster, request_.rank);
  const Topology& topology = *shape->topology;
  const auto cpus = cpusNear(topology, seat, allowedCpus(), settings_.ignores_cpu_affinity);
  if (cpus.empty()) return;
  wiring_.binding = CpuBinding(cpus);
  const std::string near = topology.label(topology.numaOf(seat));
  process_.log().write(LogLevel::info, request_.rank,
                       wiring_.binding.isBound()
                           ? fmt::format("memory and threads of this rank are bound to {}, CPUs {}", near,
                                         listOfCpus(allowedCpus()))
                           : fmt::format("memory and threads of this rank cannot be bound to {}: {}", near,
                                         wiring_.binding.problem()),
                       LogSubsystem::graph);
}

void ClusterWiring::dump() const {
  const bool is_first = process_.isFirst(request_.id.secret);
  const auto write = [this, is_first](const TopologyFiles& files, const char* name, const auto& dumpTo) {
    if (files.dump_file.empty()) return;
    // Later communicators may well be smaller than the one that is meant.
    if (files.dump_rank >= request_.nranks && request_.rank == 0 && is_first) {
      process_.log().warnOnce(
          0, fmt::format("{0} is not written: {0}_RANK is {1}, and a communicator has {2} rank(s) only", name,
                         files.dump_rank, request_.nranks));
    }
    if (files.dump_rank != request_.rank) return;
    const std::string problem = dumpTo(files.dump_file);
    if (problem.empty()) return;
    process_.log().write(LogLevel::warn, request_.rank,
                         fmt::format("{} cannot be written: {}", name, problem));
  };
  write(settings_.topology_files, "NCCL_TOPO_DUMP_FILE",
        [this](const std::string& path) { return dumpTopology(*wiring_.cluster, request_.rank, path); });
  write(settings_.graphs, "NCCL_GRAPH_DUMP_FILE", [this](const std::string& path) {
    return dumpRings(*wiring_.cluster, wiring_.found, request_.rank, path);
  });
}

/// They are the same on all ranks.
void ClusterWiring::sayRings() const {
  if (request_.rank != 0 || !process_.log().shows(LogLevel::info, LogSubsystem::graph)) return;
  for (const std::string& line : describeRings(*wiring_.cluster, wiring_.found)) {
    process_.log().write(LogLevel::info, request_.rank, line, LogSubsystem::graph);
  }
}

void requireEqualRings(const std::vector<PeerInfo>& peers, const std::vector<std::uint64_t>& digests) {
  const auto other = std::ranges::find_if(digests, [&](std::uint64_t d) { return d != digests[0]; });
  if (other == digests.end()) return;
  throw Error(
      ncclInternalError,
      fmt::format("{} and {} found different rings for the same machines. Use one build of Tutti on "
                  "all hosts, or give all ranks the same NCCL_GRAPH_FILE",
                  describe(peers[0]), describe(peers[static_cast<std::size_t>(other - digests.begin())])));
}

}  // namespace tutti
