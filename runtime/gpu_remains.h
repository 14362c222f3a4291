// GPU memory of communicators that have ended: it goes later, because that may wait, and others may use it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
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
  Accelerator* gpus = nullptr;
  int device = -1;
  std::shared_ptr<Segment> memory;   ///< what the ranks of the host share
  std::vector<PinnedMemory> pinned;  ///< keeps slots in GPU memory, too
  std::unique_ptr<PeerWatch> watch;
  RankStatus* mine = nullptr;                             ///< in `memory`, as those of the others
  std::vector<std::pair<int, const RankStatus*>> others;  ///< ranks of the host
  std::unique_ptr<GpuRank> gpu;

  /// Closes what it opened of the others and tells them, once its kernels have ended. May wait, see
  /// GpuRank::close().
  void detach();
  bool isDetached() const { return mine->detached.load(std::memory_order_relaxed) != 0; }
  /// Whether the memory may be freed.
  bool mayGo() const;
};

/// All remains of the process. CUDA waits for every kernel of a GPU when memory goes, also for one that waits
/// for the very thread that ends another communicator: so a thread of the library does that, which exists
/// while there is something to do. Thread-safe.
class GpuGraveyard {
 public:
  /// Sees to it that it goes as soon as it may, and returns.
  void keep(GpuRemains remains);

  /// Looks again at what others have used. Returns when all is freed that may go and does not have to wait,
  /// at the latest after a tenth of a second.
  void sweep();

  /// At the end of the process: waits until all is freed, or nothing has been for three seconds, or there can
  /// be no thread.
  void awaitEmpty();

  /// In a child after fork(): what is kept is the parent's, and so is the thread.
  void becomeChild();
  void lockForFork() { mutex_.lock(); }
  void unlockAfterFork() { mutex_.unlock(); }

 private:
  using Clock = std::chrono::steady_clock;

  void startThread();
  void serve();
  bool mayWaitForGpus(Accelerator& gpus);
  void pass(std::vector<GpuRemains>& remains);

  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::vector<GpuRemains> kept_;
  std::size_t in_work_ = 0;    ///< remains that the thread has taken out of kept_ for a pass
  bool has_thread_ = false;    ///< it ends when nothing is left, or has happened for a while
  bool is_asked_ = false;      ///< to look again
  std::uint64_t passes_ = 0;   ///< of the thread over all that is kept
  std::uint64_t freed_ = 0;    ///< remains
  Clock::time_point blocked_;  ///< the thread's: since when kernels have been in the way; none: the epoch
};

}  // namespace tutti
