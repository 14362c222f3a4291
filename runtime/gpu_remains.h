// GPU memory of a communicator that has ended, while other ranks may still use it.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/core/accelerator.h"
#include "runtime/core/rank_status.h"
#include "runtime/peers.h"
#include "runtime/pinned_memory.h"
#include "transports/segment.h"

namespace tutti {

/// What one rank leaves behind. Its destructor frees the memory.
///
/// On the host, memory that a peer has mapped outlives its owner. Memory of a GPU that is freed while another
/// process has it open is undefined behaviour of CUDA; so it waits until every rank of the host that had
/// opened it says that it is detached, or its process has ended.
struct GpuRemains {
  std::shared_ptr<Segment> memory;  ///< what the ranks of the host share
  std::vector<PinnedMemory> pinned;
  std::unique_ptr<PeerWatch> watch;
  std::vector<std::pair<int, const RankStatus*>> others;  ///< ranks of the host, with their lines in `memory`
  std::unique_ptr<GpuRank> gpu;

  bool mayGo() const {
    const std::vector<bool> dead = watch->dead();
    return gpu->finish(std::chrono::milliseconds(0)) &&
           std::ranges::all_of(others, [&dead](const auto& other) {
             return other.second->detached.load(std::memory_order_acquire) != 0 ||
                    dead[static_cast<std::size_t>(other.first)];
           });
  }
};

/// All remains of the process. Thread-safe.
class GpuGraveyard {
 public:
  /// Keeps it until it may go; looks after all others, too.
  void keep(GpuRemains remains) {
    std::vector<GpuRemains> gone;
    const std::scoped_lock lock(mutex_);
    kept_.push_back(std::move(remains));
    take(gone);
  }

  /// Frees what may go; whether nothing is left.
  bool sweep() {
    std::vector<GpuRemains> gone;
    const std::scoped_lock lock(mutex_);
    take(gone);
    return kept_.empty();
  }

 private:
  /// Moves out what may go. Whoever calls frees it.
  void take(std::vector<GpuRemains>& gone) {
    const auto first_gone =
        std::stable_partition(kept_.begin(), kept_.end(), [](const GpuRemains& r) { return !r.mayGo(); });
    std::move(first_gone, kept_.end(), std::back_inserter(gone));
    kept_.erase(first_gone, kept_.end());
  }

  std::mutex mutex_;
  std::vector<GpuRemains> kept_;
};

}  // namespace tutti
