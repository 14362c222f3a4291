#include "tools/train/training.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>

#include "tools/train/division.h"

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
Training<T>::Training(World& world, const Corpus& corpus, const TrainingSetup& setup)
    : world_(world),
      corpus_(corpus),
      setup_(setup),
      rank_(world.rank()),
      kernels_(makeKernels<T>(world.seat().device(), world.seat().stream())),
      replica_(setup.shape, setup.optimizer, setup.seed, *kernels_),
      gradient_memory_(replica_.parameters().size() * sizeof(T)),
      gradient_(reinterpret_cast<T*>(gradient_memory_.data()), replica_.parameters().size()),
      gradient_view_(kernels_->device(), kernels_->stream(), gradient_memory_.data(), gradient_.size_bytes()),
      check_(world, replica_.state()) {}

template <class T>
StepRecord Training<T>::start() {
  StepRecord record;
  replica_.fetch();
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
  world_.seat().finish();
  record.times.compute = watch.lap();
  gradient_view_.load();
  own.gradient_hash = hashOf({gradient_view_.data(), gradient_view_.bytes()});
  record.times.check = watch.lap();
  weigh();
  world_.seat().finish();
  record.times.compute += watch.lap();

  const tuttiStatistics_t before = world_.seat().statistics();
  average();
  world_.seat().finish();
  const tuttiStatistics_t after = world_.seat().statistics();
  own.payload_bytes = payloadOf(after) - payloadOf(before);
  own.network_bytes = after.payload_network_bytes - before.payload_network_bytes;
  record.times.all_reduce = watch.lap();

  replica_.update(step, gradient_);
  world_.seat().finish();
  record.times.update = watch.lap();
  replica_.fetch();
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
  kernels_->scale(static_cast<T>(share), gradient_);
}

template <class T>
void Training<T>::average() {
  if (setup_.averaging == Averaging::kNone) return;
  const ncclRedOp_t op = setup_.averaging == Averaging::kWeighted ? ncclSum : ncclAvg;
  const device::Seat& seat = world_.seat();
  check(ncclAllReduce(gradient_.data(), gradient_.data(), gradient_.size(), dataTypeOf<T>(), op, seat.comm(),
                      seat.stream()));
}

/// Flips the lowest bit of the middle element of dense1.weight: the smallest change there is.
template <class T>
void Training<T>::injectFault(std::size_t step) {
  if (!setup_.fault || setup_.fault->step != step || setup_.fault->rank != rank_) return;
  const std::span<T> weight = replica_.tensors()[1].in(replica_.hostParameters());
  auto* bytes = reinterpret_cast<unsigned char*>(&weight[weight.size() / 2]);
  bytes[0] ^= 1U;
  replica_.store();
}

template <class T>
double Training<T>::spread() {
  const device::Seat& seat = world_.seat();
  const Array<T> of_rank_0(seat.device(), gradient_.size());
  check(ncclBroadcast(replica_.parameters().data(), of_rank_0.span().data(), gradient_.size(),
                      dataTypeOf<T>(), 0, seat.comm(), seat.stream()));
  seat.finish();
  std::vector<T> reference(gradient_.size());
  seat.device().copyOut(reference.data(), of_rank_0.span().data(), of_rank_0.bytes().size(), seat.stream());
  replica_.fetch();
  const std::span<const T> own = std::as_const(replica_).hostParameters();
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
  for (const std::uint64_t bits : world_.gatherWords(std::array{std::bit_cast<std::uint64_t>(relative)})) {
    largest = std::max(largest, std::bit_cast<double>(bits));
  }
  return largest;
}

template class Training<float>;
template class Training<double>;

}  // namespace tutti::train
