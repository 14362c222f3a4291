// One rank on a GPU, by the CUDA runtime.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/accelerator.h"
#include "runtime/cuda/peer_regions.h"
#include "runtime/cuda/rank_list.h"
#include "runtime/cuda/task_lists.h"
#include "runtime/cuda/work_order.h"
#include "transports/cuda_ipc/cuda_call.h"
#include "transports/cuda_ipc/cuda_links.h"

namespace tutti {

/// See GpuRank. Every function makes the rank's device current for its time.
///
/// Freeing memory waits for the whole GPU, also for kernels of other communicators: so nothing is freed
/// before the destructor, and nothing but pinned memory is allocated after start().
///
/// What the host reads and writes is memory of the process that is registered with CUDA, since
/// cudaDeviceReset unmaps CUDA's own, whoever may be looking at it.
class CudaGpuRank final : public GpuRank {
 public:
  /// On the current device. `opened`, `allocations` and `ranks` outlive it.
  CudaGpuRank(OpenedMemory& opened, const Allocations& allocations, RankList& ranks,
              const GpuRankOptions& options);
  CudaGpuRank(const CudaGpuRank&) = delete;
  CudaGpuRank& operator=(const CudaGpuRank&) = delete;
  /// Without a finish() that succeeded, what a kernel may still use is left to the process's end.
  ~CudaGpuRank() override;

  GpuOffer offer() const override;
  bool connect(int peer, const PeerInfo& info, const GpuOffer& offer, std::string* reason) override;
  bool confirm(int peer) const override;
  void disconnect(int peer) override;
  LinkView inbound(std::uint32_t lane, int peer) const override;
  LinkView outbound(std::uint32_t lane, int peer) const override;
  LinkView packetsFrom(int peer) const override;
  LinkView packetsTo(int peer) const override;
  void start(std::span<const LinkRow> lanes, const LinkRow& packets, const RingTables& rings) override;

  void launchCollective(const GpuTask& task, GpuStream stream) override;
  void launchTransfers(std::span<const std::vector<GpuTask>> queues, GpuStream stream) override;
  void copy(void* to, const void* from, std::size_t bytes, GpuStream stream) override;
  bool isCapturing(GpuStream stream) const override;
  void order(GpuStream before, GpuStream after) override;

  std::uint32_t publish(void* buffer, std::size_t bytes, std::string* note) override;
  bool withdraw(std::uint32_t region, std::chrono::milliseconds limit) override;
  bool isStillIn(std::uint32_t region, const void* address) const override;
  void meetRegions() noexcept override;

  void stop() noexcept override;
  bool isLost() const noexcept override;
  GpuReport report() const override;
  std::uint64_t finished() const override;
  bool hasFault() const override;
  bool mayRunUnannounced() const noexcept override;
  std::uint64_t announced() const noexcept override;
  GpuMoved moved() const override;
  std::optional<std::pair<int, Descriptor>> unreceived() const override;
  bool finish(std::chrono::milliseconds limit) override;
  void close() noexcept override;

  /// See Accelerator::activity(). Any thread.
  Accelerator::Activity activity();

 private:
  /// What kernels use, and what waits for them.
  struct Parts {
    Parts(OpenedMemory& opened, const Allocations& allocations, const GpuRankOptions& options);
    OwnedPinnedMemory<std::byte> control;
    OwnedPinnedMemory<std::byte> announced;  ///< a word, see launchCountLaunch(); none inside one host
    OwnedStream stream;                      ///< for copies of the host
    OwnedDeviceMemory<std::byte> rank;       ///< a CudaRank, then its link ends, then the orders of rings
    WorkOrder order;
    TaskLists lists;
    CudaLinks links;
    PeerRegions regions;
    /// After a reset: leaves what CUDA has ended alone.
    void abandon() noexcept;
  };
  CudaControl& control() const { return *reinterpret_cast<CudaControl*>(parts_->control.get()); }
  CudaRank* rank() const { return reinterpret_cast<CudaRank*>(parts_->rank.get()); }

  /// Queues work on the stream in the rank's order; queue(is_captured) does it.
  template <class Queue>
  void inOrder(GpuStream stream, const Queue& queue);
  /// Whenever the captured work runs, somebody is told beforehand, or can see it.
  void announceBefore(GpuStream stream);
  std::uint64_t* announcedWord() const { return reinterpret_cast<std::uint64_t*>(parts_->announced.get()); }
  CudaTask taskOf(const GpuTask& task) const;
  std::uint64_t fill(const TaskLists::List& list, std::span<const std::vector<GpuTask>> queues,
                     std::size_t blocks) const;
  bool isIdle() const;
  bool isDone();
  void closePeers();
  void noteFailure(const std::string& text);
  void requireNotLost() const;
  std::string lossInWords() const;
  void copyToDevice(void* to, const void* from, std::size_t bytes) const;
  void readBack(void* to, const void* from, std::size_t bytes) const;

  GpuRankOptions options_;
  int device_ = -1;
  mutable std::timed_mutex mutex_;  ///< parts, except for control, once started
  std::unique_ptr<Parts> parts_;
  std::size_t inbound_ends_ = 0;
  std::atomic<bool> has_failed_ = false;  ///< release, after failure_ was written once
  std::string failure_;
  bool is_finished_ = false;
  bool is_closed_ = false;
  std::atomic<bool> has_started_ = false;
  mutable std::atomic<bool> is_lost_ = false;  ///< known to be; it stays so
  std::atomic<bool> is_wake_refused_ = false;  ///< CUDA takes no host function into graphs
  std::optional<RankList::Place> place_;       ///< last: others may ask from here on
};

}  // namespace tutti
