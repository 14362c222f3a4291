// The ranks of this process that are on GPUs.
#pragma once

#include <mutex>
#include <set>

#include "runtime/core/accelerator.h"

namespace tutti {

class CudaGpuRank;

/// Thread-safe.
class RankList {
 public:
  /// What the kernels of all of them do, see Accelerator::activity().
  Accelerator::Activity activity();

  /// Has a rank in the list for as long as it lives, which is not while activity() asks it.
  class Place {
   public:
    Place(RankList& list, CudaGpuRank& rank);
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();

   private:
    RankList& list_;
    CudaGpuRank& rank_;
  };

 private:
  std::mutex mutex_;
  std::set<CudaGpuRank*> ranks_;
};

}  // namespace tutti
