#include "runtime/cuda/rank_list.h"

#include <algorithm>

#include "runtime/cuda/cuda_gpu_rank.h"

namespace tutti {

Accelerator::Activity RankList::activity() {
  const std::scoped_lock lock(mutex_);
  auto most = Accelerator::Activity::none;
  for (CudaGpuRank* rank : ranks_) most = std::max(most, rank->activity());
  return most;
}

RankList::Place::Place(RankList& list, CudaGpuRank& rank) : list_(list), rank_(rank) {
  const std::scoped_lock lock(list_.mutex_);
  list_.ranks_.insert(&rank_);
}

RankList::Place::~Place() {
  const std::scoped_lock lock(list_.mutex_);
  list_.ranks_.erase(&rank_);
}

}  // namespace tutti
