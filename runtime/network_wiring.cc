#include "runtime/network_wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/host_topology.h"
#include "runtime/ring_ports.h"
#include "transports/tcp/tcp_network.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Slots of a network link: more than in shared memory, where nothing is on its way.
constexpr std::uint32_t kNetworkSlots = 16;

}  // namespace

NetworkWiring::NetworkWiring(Process& process, const Settings& settings, const WiringRequest& request,
                             Wiring& wiring)
    : process_(process), settings_(settings), request_(request), wiring_(wiring) {
  if (settings_.network_choice != NetworkChoice::sockets) {
    ports_ = findRdmaPorts(settings_.rdma);
  } else {
    ports_.why_not = "NCCL_NET=Socket or NCCL_IB_DISABLE=1";
  }
}

void NetworkWiring::describe(PeerInfo& self) const {
  self.has_checksums = settings_.network.has_checksums;
  self.needs_rdma = settings_.network_choice == NetworkChoice::rdma;
  self.has_rdma = ports_.ports != nullptr;
}

void NetworkWiring::connect(Bootstrap& bootstrap, RankStatus& line) {
  const PeerInfo* const without = rankWithoutRdma();
  has_rdma_ = without == nullptr;
  RdmaNetwork* const rdma = has_rdma_ ? connectByRdma() : nullptr;
  if (has_rdma_) {
    wiring_.listener = bootstrap.takeListener();
  } else {
    connectByTcp(bootstrap);
  }
  const auto hear = [rdma](int from, std::span<const std::uint8_t> letter) {
    if (rdma != nullptr) rdma->hear(from, letter);
  };
  const auto gone = [network = wiring_.network.get()](int rank) { network->retire(rank); };
  wiring_.control =
      std::make_unique<ControlPlane>(bootstrap.takeTree(), static_cast<int>(rankCount()), request_.rank, line,
                                     ControlPlane::Events{.gone = gone, .letter = hear});
  if (rdma != nullptr) {
    rdma->tellBy(
        [control = wiring_.control.get(), &watcher = process_.watcher()](
            int peer, RdmaNetwork::Letter letter) { control->send(peer, std::move(letter), watcher); });
  }
  wiring_.network_name = has_rdma_ ? fmt::format("RDMA ({})", ports_.names) : "tcp";
  wiring_.summary +=
      fmt::format("{}{} peer(s) on {} other host(s) by {}", wiring_.summary.empty() ? "" : ", ",
                  rankCount() - wiring_.locals.size(), wiring_.layout.hosts - 1, wiring_.network_name);
  if (has_rdma_) return;
  warnOfTcp();
  wiring_.summary +=
      fmt::format(" (no RDMA: {})",
                  without->rank == request_.rank ? ports_.why_not : tutti::describe(*without) + " has none");
}

/// RDMA that was to be expected, and is not used, makes jobs slow: who looks into the log must find it.
void NetworkWiring::warnOfTcp() const {
  const bool is_expected =
      std::ranges::any_of(wiring_.peers, &PeerInfo::has_rdma) || settings_.rdma.namesPorts();
  if (ports_.ports != nullptr || !is_expected || settings_.network_choice == NetworkChoice::sockets) return;
  logAt(LogLevel::warn)(
      fmt::format("this rank can use no RDMA port, so TCP carries what goes to other hosts: {}. Correct that "
                  "(tutti-doctor tells more), or set NCCL_NET=Socket where TCP is meant",
                  ports_.why_not));
}

/// RDMA is used where all ranks can. Throws Error where one cannot, and one will have nothing else.
const PeerInfo* NetworkWiring::rankWithoutRdma() const {
  auto without = std::ranges::find_if(wiring_.peers, [](const PeerInfo& peer) { return !peer.has_rdma; });
  if (without == wiring_.peers.end()) return nullptr;
  const PeerInfo& self = wiring_.peers[static_cast<std::size_t>(request_.rank)];
  const auto needs = std::ranges::find_if(wiring_.peers, &PeerInfo::needs_rdma);
  if (needs == wiring_.peers.end()) return self.has_rdma ? &*without : &self;
  if (!self.has_rdma) without = wiring_.peers.begin() + request_.rank;  // whose reason is known here
  const std::string lacks = needs == without
                                ? "but can use no RDMA port"
                                : fmt::format("but {} can use no RDMA port", tutti::describe(*without));
  throw Error(
      ncclSystemError,
      fmt::format("{} has NCCL_NET=IB, {}{}. Correct that there (tutti-doctor tells more), or unset "
                  "NCCL_NET, and TCP is used",
                  tutti::describe(*needs), lacks, self.has_rdma ? "" : fmt::format(": {}", ports_.why_not)));
}

NetworkOptions NetworkWiring::options() const {
  return {.lanes = wiring_.shape.lanes,
          .slot_count = std::max(kNetworkSlots, wiring_.shape.slot_count),
          .slot_bytes = wiring_.shape.slot_bytes,
          .checksums = settings_.network.has_checksums,
          .recovery = settings_.network.recovery,
          .fail = request_.fail,
          .note = logAt(LogLevel::warn),
          .faults = settings_.network.faults};
}

RdmaNetwork* NetworkWiring::connectByRdma() {
  RdmaOptions options{this->options()};
  options.rank = request_.rank;
  const auto own = std::ranges::lower_bound(wiring_.locals, request_.rank);
  options.local_rank = static_cast<int>(own - wiring_.locals.begin());
  for (const PeerInfo& peer : wiring_.peers) {
    options.peers.push_back(isLocal(peer.rank) ? "" : tutti::describe(peer));
  }
  if (isTopologyFromFile(settings_.topology_files))
    options.places = rdmaPlacesOf(*wiring_.cluster, request_.rank);
  options.ring_ports = ringPortsOf(*wiring_.cluster, wiring_.found, request_.rank);
  options.channels = static_cast<std::uint32_t>(wiring_.found.channels.size());
  options.settings = settings_.rdma;
  options.gpus = request_.gpus;
  options.tell_path = logAt(LogLevel::info);
  auto network = makeRdmaNetwork(ports_, std::move(options));
  RdmaNetwork* const made = network.get();
  slot_place_ = made->slotPlace();
  wiring_.network = std::move(network);
  return made;
}

void NetworkWiring::connectByTcp(Bootstrap& bootstrap) {
  std::vector<TcpPeer> peers(rankCount());
  for (const PeerInfo& peer : wiring_.peers) {
    if (isLocal(peer.rank)) continue;
    peers[static_cast<std::size_t>(peer.rank)] = {peer.listener, tutti::describe(peer)};
  }
  wiring_.network = std::make_unique<TcpNetwork>(bootstrap.takeListener(), bootstrap.secret(), request_.rank,
                                                 std::move(peers), options());
}

std::function<void(const std::string&)> NetworkWiring::logAt(LogLevel level) const {
  return [&log = process_.log(), rank = request_.rank, level,
          device = request_.gpus != nullptr ? request_.gpus->currentDevice() : -1](const std::string& text) {
    log.write(level, {rank, device}, text, LogSubsystem::net);
  };
}

bool NetworkWiring::isLocal(int rank) const { return std::ranges::binary_search(wiring_.locals, rank); }

}  // namespace tutti
