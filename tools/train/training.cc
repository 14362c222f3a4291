#include "tools/train/training.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>

#include "tools/train/division.h"
#include "tools/train/gather.h"

namespace tutti::train {
namespace {

class Stopwatch {
 public:
  /// Seconds since the last lap, or since the start.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::uint64_t payloadOf(const tuttiStatistics_t& statistics) {
  return statistics.payload_slot_bytes + statistics.payload_read_bytes + statistics.payload_written_bytes;
}

std::uint64_t sumOf(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

}  // namespace

template <class T>
Training<T>::Training(Comm& comm, const Corpus& corpus, const TrainingSetup& setup)
    : comm_(comm),
      corpus_(corpus),
      setup_(setup),
      rank_(static_cast<std::size_t>(comm.rank())),
      replica_(setup.shape, setup.optimizer, setup.seed),
      gradient_memory_(replica_.parameters().size() * sizeof(T)),
      gradient_(reinterpret_cast<T*>(gradient_memory_.data()), replica_.parameters().size()),
      check_(comm, replica_.state()) {}

template <class T>
StepRecord Training<T>::start() {
  StepRecord record;
  record.check = check_.compare({});
  return record;
}

template <class T>
std::vector<std::size_t> Training<T>::batchOf(std::size_t step) const {
  return batchPositions(corpus_, setup_.window, totalOf(setup_.counts), setup_.seed, step);
}

template <class T>
StepRecord Training<T>::step(std::size_t step) {
  StepRecord record;
  record.step = step;
  RankReport own;
  Stopwatch watch;

  const std::vector<std::size_t> batch = batchOf(step);
  const Examples slice = gatherExamples(corpus_, setup_.window, sliceOf(batch, setup_.counts, rank_));
  own.loss = replica_.lossAndGradient(slice, gradient_);
  record.times.compute = watch.lap();
  own.gradient_hash = hashOf(std::as_bytes(gradient_));
  record.times.check = watch.lap();
  weigh();
  record.times.compute += watch.lap();

  const tuttiStatistics_t before = comm_.statistics();
  average();
  const tuttiStatistics_t after = comm_.statistics();
  own.payload_bytes = payloadOf(after) - payloadOf(before);
  own.network_bytes = after.payload_network_bytes - before.payload_network_bytes;
  record.times.all_reduce = watch.lap();

  replica_.update(step, gradient_);
  record.times.update = watch.lap();
  injectFault(step);
  record.check = check_.compare(own);
  record.times.check += watch.lap();

  record.loss = weightedMean(record.check.losses, setup_.counts);
  record.payload_bytes = sumOf(record.check.payload_bytes);
  record.network_bytes = sumOf(record.check.network_bytes);
  return record;
}

/// The gradient is a mean over the slice. Times the slice's share of the batch, the sum over ranks is the
/// mean over the batch: sum of (count / total) * (sum over the slice / count).
template <class T>
void Training<T>::weigh() {
  if (setup_.averaging != Averaging::kWeighted) return;
  const double share =
      static_cast<double>(setup_.counts[rank_]) / static_cast<double>(totalOf(setup_.counts));
  for (T& value : gradient_) value *= static_cast<T>(share);
}

template <class T>
void Training<T>::average() {
  if (setup_.averaging == Averaging::kNone) return;
  const ncclRedOp_t op = setup_.averaging == Averaging::kWeighted ? ncclSum : ncclAvg;
  comm_.allReduce(gradient_.data(), gradient_.data(), gradient_.size(), op);
}

/// Flips the lowest bit of the middle element of dense1.weight: the smallest change there is.
template <class T>
void Training<T>::injectFault(std::size_t step) {
  if (!setup_.fault || setup_.fault->step != step || setup_.fault->rank != rank_) return;
  const std::span<T> weight = replica_.tensors()[1].in(replica_.parameters());
  auto* bytes = reinterpret_cast<unsigned char*>(&weight[weight.size() / 2]);
  bytes[0] ^= 1U;
}

template <class T>
double Training<T>::spread() {
  const std::span<const T> own = std::as_const(replica_).parameters();
  std::vector<T> reference(own.begin(), own.end());
  comm_.broadcast(reference.data(), reference.data(), reference.size(), dataTypeOf<T>(), 0);
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto expected = static_cast<double>(reference[i]);
    const double delta = static_cast<double>(own[i]) - expected;
    difference += delta * delta;
    size += expected * expected;
  }
  const double relative = difference == 0 ? 0.0 : std::sqrt(difference / size);
  double largest = 0;
  for (const std::uint64_t bits : gatherWords(comm_, std::array{std::bit_cast<std::uint64_t>(relative)})) {
    largest = std::max(largest, std::bit_cast<double>(bits));
  }
  return largest;
}

template class Training<float>;
template class Training<double>;

}  // namespace tutti::train
