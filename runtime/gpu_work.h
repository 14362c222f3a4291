// The GPU half of a communicator: its kernels are launched here, and looked after while they run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/core/accelerator.h"
#include "runtime/core/unique_fd.h"
#include "runtime/gpu_proxy.h"
#include "runtime/monitor.h"
#include "runtime/watcher.h"

namespace tutti {

/// What one communicator launches together.
struct GpuLaunch {
  std::vector<GpuTask> collectives = {};  ///< in order
  std::vector<std::pair<GpuTask, GpuTask>> to_self =
      {};                                         ///< sends and receives of the rank to and from itself
  std::vector<std::vector<GpuTask>> queues = {};  ///< transfers, side by side, after the collectives
  std::vector<GpuStream> streams;                 ///< all work runs on the first, ordered with the others
};

/// Kernels wait in the GPU, where nobody can ask anything: what they wait for they write down, the Watcher
/// reads it, and asks a monitor about it, as a waiting caller on the host does. What it finds stops all
/// kernels.
class GpuWork final : public Watched {
 public:
  /// `fail` makes something the communicator's fault and tells all ranks. All outlive this.
  GpuWork(GpuRank& gpu, Network* network, const Surroundings& around, const std::vector<int>& remote_peers,
          std::function<void(ncclResult_t, const std::string&)> fail);
  GpuWork(const GpuWork&) = delete;
  GpuWork& operator=(const GpuWork&) = delete;
  ~GpuWork();

  bool isCapturing(GpuStream stream) const { return gpu_.isCapturing(stream); }
  /// Queues everything and returns. Throws Error.
  void launch(const GpuLaunch& launch);
  /// A captured launch runs. Any thread.
  void wake() noexcept {
    if (proxy_ != nullptr) proxy_->wake();
  }
  /// All waits of all kernels fail. Any thread.
  void stop() noexcept;
  /// A fault that a kernel has left becomes the communicator's. Waits for up to a second where a peer on
  /// another host is asked what it did. Any thread.
  void adoptFault();
  /// The same without waiting; it was seen `ago`. False: the peer is asked, and the Watcher goes on. Any
  /// thread.
  bool tryAdoptFault(std::chrono::nanoseconds ago = {});
  /// The same, where cudaDeviceReset has ended what the rank has on its GPU: the driver is asked.
  void adoptReset();
  /// Somebody has found out that another rank failed or is gone. Any thread.
  void noteLostOthers() noexcept { has_lost_others_.store(true, std::memory_order_relaxed); }
  /// Whether somebody has; the Watcher looks, too.
  bool hasLostOthers() const noexcept { return has_lost_others_.load(std::memory_order_relaxed); }
  /// The network is driven no more. After the last kernel.
  void endProxy() { proxy_.reset(); }
  /// Waits until no kernel runs. False when the limit came first.
  bool finish(std::chrono::milliseconds limit);

  int fd() const override { return attention_.get(); }
  Next attend() override;

 private:
  /// One wait of one kernel, for as long as it lasts.
  struct Attention {
    WaitTime time;
    std::variant<std::unique_ptr<CollectiveMonitor>, std::unique_ptr<TransferMonitor>> monitor;
  };

  Attention startAttention(const GpuReport::Wait& wait) const;
  void lookAt(const GpuReport::Wait& wait);
  /// Makes it the communicator's fault; it was seen `ago`. False: not yet, see Monitor::tryDiffers.
  bool tell(const GpuReport::Fault& fault, std::chrono::nanoseconds ago);

  GpuRank& gpu_;
  const Surroundings& around_;
  std::function<void(ncclResult_t, const std::string&)> fail_;
  std::atomic<bool> has_lost_others_{false};
  UniqueFd attention_;  ///< never readable
  std::unique_ptr<GpuProxy> proxy_;
  std::map<std::uint64_t, Attention> waits_;                         ///< by serial; the Watcher's
  std::optional<std::chrono::steady_clock::time_point> fault_seen_;  ///< by the Watcher
};

}  // namespace tutti
