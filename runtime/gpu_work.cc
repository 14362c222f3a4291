#include "runtime/gpu_work.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "tutti/error.h"

namespace tutti {

GpuWork::GpuWork(GpuRank& gpu, Network* network, const Surroundings& around,
                 const std::vector<int>& remote_peers,
                 std::function<void(ncclResult_t, const std::string&)> fail)
    : gpu_(gpu), around_(around), fail_(std::move(fail)), attention_(::eventfd(0, EFD_CLOEXEC)) {
  if (!attention_) throw Error(ncclSystemError, fmt::format("eventfd: {}", std::strerror(errno)));
  if (network != nullptr) proxy_ = std::make_unique<GpuProxy>(*network, gpu, remote_peers);
}

GpuWork::~GpuWork() = default;

void GpuWork::launch(const GpuLaunch& launch) {
  auto* const stream = launch.streams.front();
  for (auto* const other : launch.streams) {
    if (other != stream) gpu_.order(other, stream);
  }
  // In a captured launch a host node wakes the proxy each time it runs.
  const bool wakes = proxy_ != nullptr && !gpu_.isCapturing(stream);
  for (const GpuTask& task : launch.collectives) {
    if (wakes) proxy_->wake();
    gpu_.launchCollective(task, stream);
  }
  for (const auto& [send, receive] : launch.to_self) {
    gpu_.copy(receive.recv, send.send, send.plan.descriptor.count, stream);
  }
  if (!launch.queues.empty()) {
    if (wakes) proxy_->wake();
    gpu_.launchTransfers(launch.queues, stream);
  }
  for (auto* const other : launch.streams) {
    if (other != stream) gpu_.order(stream, other);
  }
  if (proxy_ != nullptr && !wakes && gpu_.mayRunUnannounced()) proxy_->lookOut();
}

void GpuWork::stop() noexcept {
  gpu_.stop();
  if (proxy_ != nullptr) proxy_->stop();
}

bool GpuWork::finish(std::chrono::milliseconds limit) { return gpu_.finish(limit); }

GpuWork::Attention GpuWork::startAttention(const GpuReport::Wait& wait) const {
  const WaitTime begun(std::chrono::steady_clock::now());
  if (isTransfer(wait.descriptor)) {
    return {begun,
            std::make_unique<TransferMonitor>(around_, wait.descriptor, wait.is_send, Caller::goes_on)};
  }
  return {begun,
          std::make_unique<CollectiveMonitor>(around_, wait.operation, wait.descriptor, Caller::goes_on)};
}

void GpuWork::lookAt(const GpuReport::Wait& wait) {
  const auto found = waits_.find(wait.serial);
  if (found == waits_.end()) {
    waits_.emplace(wait.serial, startAttention(wait));
    return;
  }
  const auto waited = found->second.time.look(std::chrono::steady_clock::now());
  std::visit([&](const auto& monitor) { monitor->inspect(wait.peer, waited); }, found->second.monitor);
}

bool GpuWork::tell(const GpuReport::Fault& fault, std::chrono::nanoseconds ago) {
  const std::string self = describe(around_.wiring.peers[static_cast<std::size_t>(around_.rank)]);
  if (fault.kind == GpuReport::Fault::Kind::differs) {
    const GpuReport::Wait wait{.operation = fault.operation, .descriptor = fault.ours, .peer = fault.peer};
    return std::visit([&](const auto& monitor) { return monitor->tryDiffers(fault.peer, fault.theirs, ago); },
                      startAttention(wait).monitor);
  }
  if (fault.kind == GpuReport::Fault::Kind::failed) {
    fail_(ncclUnhandledCudaError,
          fmt::format(
              "the GPU of {} has failed: {}. If a kernel of this library or of the program broke it, no "
              "more calls of CUDA work in that process",
              self, fault.text));
  } else {
    const bool is_reset = fault.kind == GpuReport::Fault::Kind::reset;
    fail_(is_reset ? ncclUnhandledCudaError : ncclInternalError, fmt::format("{}: {}", self, fault.text));
  }
  return true;
}

bool GpuWork::tryAdoptFault(std::chrono::nanoseconds ago) {
  if (around_.fault.tripped() || !gpu_.hasFault()) return true;
  const GpuReport report = gpu_.report();
  if (!report.fault) return true;
  const bool is_told = tell(*report.fault, ago);
  if (around_.fault.tripped()) fail_(around_.fault.code(), around_.fault.message());
  return is_told;
}

void GpuWork::adoptFault() {
  const auto begin = std::chrono::steady_clock::now();
  while (!tryAdoptFault(std::chrono::steady_clock::now() - begin)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void GpuWork::adoptReset() {
  if (!around_.fault.tripped() && gpu_.isLost()) tryAdoptFault();
}

Watched::Next GpuWork::attend() {
  constexpr auto kWhileRunning = std::chrono::milliseconds(20);
  constexpr auto kIdle = std::chrono::milliseconds(100);
  const GpuReport report = gpu_.report();
  if (!around_.fault.tripped()) {
    if (report.fault) {
      const auto now = std::chrono::steady_clock::now();
      tell(*report.fault, now - fault_seen_.value_or(now));
      if (!fault_seen_) fault_seen_ = now;
    }
    std::erase_if(waits_, [&report](const auto& known) {
      return std::ranges::find(report.waits, known.first, &GpuReport::Wait::serial) == report.waits.end();
    });
    for (const GpuReport::Wait& wait : report.waits) {
      if (!around_.fault.tripped()) lookAt(wait);
    }
    // A monitor tripped it; now it is told to all.
    if (around_.fault.tripped()) fail_(around_.fault.code(), around_.fault.message());
  }
  if (!hasLostOthers() && failureOfPeers(around_.wiring, around_.rank)) noteLostOthers();
  const bool runs = report.started != report.finished;
  gpu_.meetRegions();
  return {.when_readable = false, .delay = runs ? kWhileRunning : kIdle};
}

}  // namespace tutti
