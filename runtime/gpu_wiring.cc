#include "runtime/gpu_wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/peers.h"

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
  for (int local = 0; local < localCount(); ++local) {
    if (local == local_) continue;
    mine(local).gpu =
        wiring_.gpu->connect(rankAt(local), peerAt(local), offers[static_cast<std::size_t>(rankAt(local))],
                             &reasons_[static_cast<std::size_t>(local)]);
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
  GpuRemains remains{.memory = wiring.memory,
                     .pinned = std::move(wiring.pinned),
                     .watch = std::move(wiring.watch),
                     .others = {},
                     .gpu = std::move(wiring.gpu)};
  for (int local = 0; local < std::ssize(wiring.locals); ++local) {
    const int other = wiring.locals[static_cast<std::size_t>(local)];
    if (other != rank) remains.others.emplace_back(other, statusOf(local));
  }
  return remains;
}

void abandonGpu(Process& process, Wiring& wiring, int rank, const StatusOf& statusOf, const Error& error) {
  const auto local = std::ranges::find(wiring.locals, rank) - wiring.locals.begin();
  RankStatus& mine = *statusOf(static_cast<int>(local));
  mine.code = error.code();
  const std::string text = error.what();
  std::memcpy(mine.text.data(), text.data(), std::min(text.size(), mine.text.size() - 1));
  mine.state.store(RankStatus::State::failed, std::memory_order_release);
  if (wiring.control != nullptr) {
    wiring.control->announce(process.watcher());
    wiring.control->flush();
  }
  GpuRemains remains = takeGpuRemains(wiring, rank, statusOf);
  if (remains.gpu->finish(std::chrono::milliseconds(0))) mine.detached.store(1, std::memory_order_release);
  process.gpus().graveyard().keep(std::move(remains));
}

std::string GpuWiring::summary() const {
  const auto reached = std::ranges::count(reaches_, true);
  const auto others = localCount() - 1;
  if (others == 0) return "";
  return fmt::format("; GPU memory of {} of them in reach{}", reached,
                     reached < others ? ", pinned host memory for the others" : "");
}

}  // namespace tutti
