// One rank of a data-parallel training run: gradient of the own slice, average over the ranks, update, check.
// Says nothing and judges nothing; that is train.cc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tools/train/data.h"
#include "tools/train/kernels.h"
#include "tools/train/model.h"
#include "tools/train/replica.h"
#include "tools/train/replica_check.h"
#include "tools/train/world.h"

namespace tutti::train {

/// One bit of one parameter is flipped on `rank` after step `step`, before the check of that step.
struct Fault {
  std::size_t rank = 0;
  std::size_t step = 0;  ///< counts from 1
};

/// How gradients of the ranks become one.
enum class Averaging {
  kNone,      ///< each rank keeps its own
  kMean,      ///< mean over ranks: right where all have equally many sequences
  kWeighted,  ///< each rank's times its share of the sequences, summed: right for any counts
};

/// All ranks pass the same.
struct TrainingSetup {
  ModelShape shape;
  OptimizerSettings optimizer;
  std::uint64_t seed = 1;
  Window window;
  std::vector<std::size_t> counts;  ///< sequences of each rank per step
  Averaging averaging = Averaging::kMean;
  std::optional<Fault> fault;
};

/// Seconds of this rank. The all-reduce includes waiting for the slowest rank.
struct StepTimes {
  double compute = 0;  ///< drawing the sequences, loss, gradient and its weight
  double all_reduce = 0;
  double update = 0;
  double check = 0;  ///< hashes and their all-gather

  double all() const { return compute + all_reduce + update + check; }
};

/// The same on all ranks, but for the times.
struct StepRecord {
  std::size_t step = 0;  ///< counts from 1; 0 is the state before the first step
  double loss = 0;       ///< mean over the batch, before the update
  CheckResult check;
  std::uint64_t payload_bytes = 0;  ///< that the averaging moved between ranks, over all ranks
  std::uint64_t network_bytes = 0;  ///< of them, between hosts
  StepTimes times;
};

template <class T>
class Training {
 public:
  Training(World& world, const Corpus& corpus, const TrainingSetup& setup);

  const TrainingSetup& setup() const { return setup_; }
  const Replica<T>& replica() const { return replica_; }
  Kernels<T>& kernels() { return *kernels_; }
  std::size_t gradientBytes() const { return gradient_.size_bytes(); }

  /// Compares the replicas as they are. Collective.
  StepRecord start();

  /// Steps count from 1. Collective.
  StepRecord step(std::size_t step);

  /// The sequences of all ranks in a step.
  std::vector<std::size_t> batchOf(std::size_t step) const;

  /// The largest over ranks of |parameters - those of rank 0| / |those of rank 0|, in the Euclidean norm; the
  /// same on all ranks. Collective.
  double spread();

 private:
  void weigh();
  void average();
  void injectFault(std::size_t step);

  World& world_;
  const Corpus& corpus_;
  TrainingSetup setup_;
  std::size_t rank_;
  std::unique_ptr<Kernels<T>> kernels_;
  Replica<T> replica_;
  // The library's own memory, on the device: peers may read it in place.
  Buffer gradient_memory_;
  std::span<T> gradient_;
  device::HostView gradient_view_;
  ReplicaCheck check_;
};

extern template class Training<float>;
extern template class Training<double>;

}  // namespace tutti::train
