// Which graphs hold work of a rank: they may be launched at any time, without anybody's telling the rank.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>

namespace tutti {

/// Counts graphs. A graph is gone once it, all that was instantiated from it, and all launches of that have
/// ended: CUDA then destroys an object that the graph keeps for us (cudaUserObject_t), in a thread of its
/// own. That may be after the rank's end.
class CapturedGraphs {
 public:
  /// The one that the stream is being captured into. One that CUDA cannot tell the end of never is gone.
  void add(cudaStream_t stream);
  /// Any thread. What the last launch has written is seen by whoever gets false.
  bool exist() const noexcept { return count_->load(std::memory_order_acquire) != 0; }

 private:
  std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tutti
