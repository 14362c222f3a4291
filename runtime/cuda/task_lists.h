// Lists of transfers, as kernels read them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/cuda_work.h"
#include "transports/cuda_ipc/cuda_call.h"

namespace tutti {

/// Pinned memory for the lists of a rank's launches. A list is used again once its kernel has ended; lists of
/// captured launches stay to the end, because graphs replay. Used by one thread at a time.
class TaskLists {
 public:
  /// For one launch: tasks of queue q are [first[q], first[q + 1]).
  struct List {
    CudaTask* tasks = nullptr;
    std::uint32_t* first = nullptr;
    // How it is kept.
    OwnedPinnedMemory<std::byte> memory;
    std::size_t bytes = 0;
    OwnedEvent done;
    bool is_captured = false;
  };

  /// Takes no memory of the GPU, and pinned memory only where no list is free.
  List& take(std::size_t tasks, std::size_t queues);
  /// After the launch that reads it.
  static void launched(List& list, cudaStream_t stream, bool is_captured);

  /// After a reset of the device, which has ended what is CUDA's.
  void abandon() noexcept;

 private:
  std::vector<std::unique_ptr<List>> lists_;
};

}  // namespace tutti
