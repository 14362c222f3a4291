#include "runtime/gpu_wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/peers.h"
#include "runtime/rings.h"
#include "runtime/topology/paths.h"

namespace tutti {

GpuWiring::GpuWiring(Process& process, Wiring& wiring, Bootstrap& bootstrap, int local,
                     std::function<RankMemory(int)> memoryOf)
    : process_(process),
      wiring_(wiring),
      bootstrap_(bootstrap),
      local_(local),
      memoryOf_(std::move(memoryOf)),
      reaches_(wiring.locals.size()),
      reasons_(wiring.locals.size()) {}

void GpuWiring::open(Accelerator& gpus, const Settings& settings, const std::function<void()>& wake) {
  process_.gpus().graveyard().sweep();
  wiring_.gpus = &gpus;
  wiring_.pinned.emplace_back(gpus, wiring_.memory->data(), wiring_.memory->bytes(), wiring_.memory);
  GpuRankOptions options{.self = peerAt(local_),
                         .nranks = static_cast<int>(wiring_.peers.size()),
                         .locals = wiring_.locals,
                         .shape = wiring_.shape,
                         .status = &memoryOf_(local_).status()};
  for (int local = 0; local < localCount(); ++local)
    options.regions.push_back(&memoryOf_(local).gpuRegions());
  // The Watcher looks at deadlines; that of the kernels is for a process whose Watcher is gone.
  const auto longest = std::max(settings.timeout, settings.stall_timeout) + std::chrono::seconds(30);
  if (settings.timeout.count() != 0 && settings.stall_timeout.count() != 0) {
    options.wait_limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(longest).count());
  }
  if (wiring_.layout.hosts > 1) options.wake = wake;
  wiring_.gpu = gpus.makeRank(options);
  const auto offers = bootstrap_.allGather(wiring_.gpu->offer());
  sayShared(offers);
  if (localCount() > kMaxMeshRanks) return;
  forbid(settings);
  for (int local = 0; local < localCount(); ++local) {
    std::string& reason = reasons_[static_cast<std::size_t>(local)];
    if (local == local_ || !reason.empty()) continue;
    mine(local).gpu = wiring_.gpu->connect(rankAt(local), peerAt(local),
                                           offers[static_cast<std::size_t>(rankAt(local))], &reason);
  }
}

/// By what the person said of how GPUs may reach each other.
void GpuWiring::forbid(const Settings& settings) {
  if (!settings.uses_peer_access) {
    std::ranges::fill(reasons_, "NCCL_P2P_DISABLE or NCCL_P2P_LEVEL forbids it");
    return;
  }
  const auto level = settings.topology.p2p_level;
  if (!level) return;
  const auto [shape, own] = seatOf(*wiring_.cluster, rankAt(local_));
  const TopologyPaths paths(*shape->topology);
  for (int local = 0; local < localCount(); ++local) {
    const PathClass distance = paths.between(own, seatOf(*wiring_.cluster, rankAt(local)).node).path_class;
    if (distance <= *level) continue;
    reasons_[static_cast<std::size_t>(local)] =
        fmt::format("NCCL_P2P_LEVEL={} forbids it, since its GPU is at {}", name(*level), name(distance));
  }
}

/// Good enough for tests; for anything else most likely a mistake in choosing devices.
void GpuWiring::sayShared(const std::vector<GpuOffer>& offers) const {
  const auto gpuAt = [&](int local) -> const GpuInfo& {
    return offers[static_cast<std::size_t>(rankAt(local))].gpu;
  };
  for (int local = 0; local < localCount(); ++local) {
    if (local == local_ || gpuAt(local).uuid != gpuAt(local_).uuid) continue;
    process_.log().write(
        LogLevel::warn, peerAt(local_).rank,
        fmt::format("shares GPU {} ({}) with {}: works, but their kernels compete for it. Did each "
                    "rank call cudaSetDevice with its local rank?",
                    gpuAt(local_).device, gpuAt(local_).bus_id.data(), describe(peerAt(local))));
    return;
  }
}

void GpuWiring::settle() {
  const bool tries = localCount() <= kMaxMeshRanks;
  for (int local = 0; tries && local < localCount(); ++local) {
    if (local == local_) continue;
    mine(local).gpu_both = mine(local).gpu && theirs(local).gpu && wiring_.gpu->confirm(rankAt(local));
  }
  bootstrap_.barrier();
  for (int local = 0; local < localCount(); ++local) {
    if (local == local_) continue;
    const auto at = static_cast<std::size_t>(local);
    reaches_[at] = tries && mine(local).gpu_both && theirs(local).gpu_both;
    if (reaches_[at]) continue;
    wiring_.gpu->disconnect(rankAt(local));
    if (reasons_[at].empty())
      reasons_[at] = "it cannot reach this rank's, or what was written did not arrive";
    process_.log().write(LogLevel::warn, peerAt(local_).rank,
                         fmt::format("GPU memory of {} is not used: {}. Their links go through pinned host "
                                     "memory",
                                     describe(peerAt(local)), reasons_[at]));
  }
}

GpuRemains takeGpuRemains(Wiring& wiring, int rank, const StatusOf& statusOf) {
  GpuRemains remains{.gpus = wiring.gpus,
                     .device = wiring.gpu != nullptr ? wiring.gpu->offer().gpu.device : -1,
                     .memory = wiring.memory,
                     .pinned = std::move(wiring.pinned),
                     .watch = std::move(wiring.watch),
                     .mine = nullptr,
                     .others = {},
                     .gpu = std::move(wiring.gpu)};
  for (int local = 0; local < std::ssize(wiring.locals); ++local) {
    const int other = wiring.locals[static_cast<std::size_t>(local)];
    if (other == rank) {
      remains.mine = statusOf(local);
    } else {
      remains.others.emplace_back(other, statusOf(local));
    }
  }
  return remains;
}

void abandonGpu(Process& process, Wiring& wiring, int rank, const StatusOf& statusOf, const Error& error) {
  const auto local = std::ranges::find(wiring.locals, rank) - wiring.locals.begin();
  RankStatus& mine = *statusOf(static_cast<int>(local));
  mine.code = error.code();
  const std::string text = fmt::format("{} failed while the communicator was being made: {}",
                                       describe(wiring.peers[static_cast<std::size_t>(rank)]), error.what());
  std::memcpy(mine.text.data(), text.data(), std::min(text.size(), mine.text.size() - 1));
  mine.state.store(RankStatus::State::failed, std::memory_order_release);
  if (wiring.control != nullptr) {
    wiring.control->announce(process.watcher());
    wiring.control->flush();
  }
  if (wiring.gpu == nullptr) {
    mine.detached.store(1, std::memory_order_release);
    return;
  }
  process.gpus().graveyard().keep(takeGpuRemains(wiring, rank, statusOf));
}

std::string GpuWiring::wayTo(int rank) const {
  const auto local = std::ranges::find(wiring_.locals, rank);
  if (local == wiring_.locals.end()) return fmt::format("network ({})", wiring_.network_name);
  if (!reaches_[static_cast<std::size_t>(local - wiring_.locals.begin())]) return "pinned host memory";
  const PeerInfo& self = peerAt(local_);
  const PeerInfo& peer = wiring_.peers[static_cast<std::size_t>(rank)];
  return peer.process_token == self.process_token ? "peer access" : "CUDA IPC";
}

/// As "ranks 1-3 by CUDA IPC, rank 4 by network (tcp)".
std::string GpuWiring::summary() const {
  std::string text;
  const auto nranks = static_cast<int>(wiring_.peers.size());
  const int self = rankAt(local_);
  for (int first = 0; first < nranks;) {
    const std::string way = first != self ? wayTo(first) : "";
    int last = first;
    while (last + 1 < nranks && last + 1 != self && wayTo(last + 1) == way) ++last;
    if (!way.empty()) {
      text +=
          fmt::format("{}rank{} by {}", text.empty() ? "" : ", ",
                      first == last ? fmt::format(" {}", first) : fmt::format("s {}-{}", first, last), way);
    }
    first = last + 1;
  }
  return text;
}

}  // namespace tutti
