#include "tools/train/train.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tools/train/errors.h"
#include "tools/train/replica.h"
#include "tools/train/replica_check.h"
#include "tools/train/verify.h"

namespace tutti::train {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// The run on whole batches that --verify compares with. Rank 0 trains it in step with the distributed run,
/// so that no rank waits for longer than a step.
template <class T>
struct WholeBatchRun {
  Replica<T> replica;
  std::vector<T> gradient;

  void step(std::size_t step, const Examples& examples) {
    replica.lossAndGradient(examples, gradient);
    replica.update(step, gradient);
  }
};

template <class T>
class Training {
 public:
  Training(Comm& comm, const Options& options, const Corpus& corpus, const ModelShape& shape);

  void run();

 private:
  void printHeader(const ModelShape& shape) const;
  void step(std::size_t step);
  double averageOverRanks(double loss);
  void injectFault(std::size_t step);
  void judge(std::size_t step, const CheckResult& result);
  void printStep(std::size_t step, double loss, const CheckResult& result) const;
  void printSummary() const;
  bool verify();
  void conclude() const;

  template <class... Arguments>
  void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    if (rank_ == 0) fmt::print("{}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  Comm& comm_;
  const Options& options_;
  const Corpus& corpus_;
  std::size_t rank_;
  std::size_t nranks_;
  Replica<T> replica_;
  // The library's own memory: peers may read it in place.
  Buffer gradient_memory_;
  std::span<T> gradient_;
  ReplicaCheck check_;
  std::optional<WholeBatchRun<T>> whole_batch_;

  std::vector<double> losses_;
  std::size_t steps_with_distinct_gradients_ = 0;
  std::optional<std::size_t> first_difference_;  ///< the step
  Seconds in_steps_{};
  Seconds in_all_reduce_{};
};

template <class T>
Training<T>::Training(Comm& comm, const Options& options, const Corpus& corpus, const ModelShape& shape)
    : comm_(comm),
      options_(options),
      corpus_(corpus),
      rank_(static_cast<std::size_t>(comm.rank())),
      nranks_(static_cast<std::size_t>(comm.size())),
      replica_(shape, options.optimizer, options.seed),
      gradient_memory_(replica_.parameters().size() * sizeof(T)),
      gradient_(reinterpret_cast<T*>(gradient_memory_.data()), replica_.parameters().size()),
      check_(comm, replica_.state()) {
  if (options.verify && rank_ == 0) {
    whole_batch_ =
        WholeBatchRun<T>{{shape, options.optimizer, options.seed}, std::vector<T>(gradient_.size())};
  }
  printHeader(shape);
}

template <class T>
void Training<T>::printHeader(const ModelShape& shape) const {
  const OptimizerSettings& optimizer = options_.optimizer;
  std::string network = fmt::format("{} characters x {}", shape.context, shape.embedding);
  for (std::size_t layer = 0; layer < shape.layers; ++layer)
    network += fmt::format(" -> {} tanh", shape.hidden);
  say("tutti-train {}: next-character prediction, {} rank{}", TUTTI_VERSION, nranks_,
      nranks_ == 1 ? "" : "s");
  say("  data       {}: {} bytes, {} distinct", corpus_.path, corpus_.symbols.size(), corpus_.vocabulary);
  say("  network    {} -> {} softmax: {} parameters in {} tensors", network, shape.vocabulary,
      gradient_.size(), replica_.tensors().size());
  say("  batch      {} examples, {} per rank", options_.batch, options_.batch / nranks_);
  say("  optimizer  {}, learning rate {}{}", optimizerName(optimizer.kind), optimizer.learning_rate,
      optimizer.kind == OptimizerKind::kSgd ? fmt::format(", momentum {}", optimizer.momentum) : "");
  say("  averaged   {} per step, {}",
      options_.average ? fmt::format("{} bytes", gradient_.size_bytes()) : "nothing (--no-average)",
      precisionName(options_.precision));
  say("  seed       {}", options_.seed);
}

template <class T>
void Training<T>::run() {
  const CheckResult start = check_.compare(0);
  if (start.difference) {
    throw SharedFailure("replicas differ after step 0 (initialisation): " +
                        describe(*start.difference, nranks_));
  }
  say("step {:>4}  {} replicas equal ({:016x})", 0, nranks_, start.state_hash);
  for (std::size_t step = 1; step <= options_.steps; ++step) this->step(step);
  printSummary();
  const bool verified = !options_.verify || verify();
  conclude();
  if (!verified) throw SharedFailure("--verify failed: see the lines that say \"no\" above");
}

template <class T>
void Training<T>::step(std::size_t step) {
  const std::vector<std::size_t> batch =
      batchPositions(corpus_, options_.context, options_.batch, options_.seed, step);
  const auto started = Clock::now();
  const Examples slice = gatherExamples(corpus_, options_.context, sliceOf(batch, rank_, nranks_));
  const double own_loss = replica_.lossAndGradient(slice, gradient_);
  const std::uint64_t gradient_hash = hashOf(std::as_bytes(gradient_));

  const auto reduce_started = Clock::now();
  if (options_.average) comm_.allReduce(gradient_.data(), gradient_.data(), gradient_.size(), ncclAvg);
  in_all_reduce_ += Clock::now() - reduce_started;

  replica_.update(step, gradient_);
  injectFault(step);
  const CheckResult result = check_.compare(gradient_hash);
  const double loss = averageOverRanks(own_loss);
  in_steps_ += Clock::now() - started;

  losses_.push_back(loss);
  if (result.distinct_gradients > 1) ++steps_with_distinct_gradients_;
  const bool first_or_last = step == 1 || step == options_.steps;
  if (first_or_last || step % options_.log_every == 0) printStep(step, loss, result);
  judge(step, result);
  // A NaN that an all-reduce brings to all ranks leaves them identical.
  if (!std::isfinite(loss)) throw SharedFailure(fmt::format("the loss is {} at step {}", loss, step));
  if (whole_batch_) whole_batch_->step(step, gatherExamples(corpus_, options_.context, batch));
}

template <class T>
double Training<T>::averageOverRanks(double loss) {
  comm_.allReduce(&loss, &loss, 1, ncclAvg);
  return loss;
}

/// Flips the lowest bit of the middle element of dense1.weight: the smallest change there is.
template <class T>
void Training<T>::injectFault(std::size_t step) {
  if (!options_.fault || options_.fault->step != step || options_.fault->rank != rank_) return;
  const std::span<T> weight = replica_.tensors()[1].in(replica_.parameters());
  auto* bytes = reinterpret_cast<unsigned char*>(&weight[weight.size() / 2]);
  bytes[0] ^= 1U;
}

template <class T>
void Training<T>::judge(std::size_t step, const CheckResult& result) {
  if (!result.difference || first_difference_) return;
  first_difference_ = step;
  const std::string what = describe(*result.difference, nranks_);
  if (options_.average) throw SharedFailure(fmt::format("replicas differ after step {}: {}", step, what));
  say("replicas diverged at step {}: {}", step, what);
}

template <class T>
void Training<T>::printStep(std::size_t step, double loss, const CheckResult& result) const {
  const std::string replicas = result.difference ? fmt::format("{} distinct replicas", result.distinct_states)
                                                 : fmt::format("replicas equal ({:016x})", result.state_hash);
  say("step {:>4}  loss {:.4f}  gradients differed before averaging: {} distinct of {}  {}", step, loss,
      result.distinct_gradients, nranks_, replicas);
}

template <class T>
void Training<T>::printSummary() const {
  const double share = in_steps_.count() > 0 ? in_all_reduce_ / in_steps_ : 0.0;
  say("time: {:.3g} ms per step, {:.1f} % of it in the all-reduce of gradients (rank 0)",
      1e3 * in_steps_.count() / static_cast<double>(options_.steps), 100.0 * share);
  say("gradients differed between ranks before averaging in {} of {} steps", steps_with_distinct_gradients_,
      options_.steps);
}

/// The same answer on all ranks: rank 0 judges, the others learn it.
template <class T>
bool Training<T>::verify() {
  std::int32_t failed = 0;
  const LossTrend trend = lossTrend(losses_);
  if (whole_batch_) {
    const double limit = differenceLimit<T>(options_.optimizer.kind);
    const auto differences =
        compareTensors<T>(replica_.tensors(), replica_.parameters(), whole_batch_->replica.parameters());
    const double largest = largestDifference(differences);
    const bool equal = largest <= limit;
    say("verify: per tensor |distributed - whole batch| / |whole batch|");
    for (const TensorDifference& difference : differences) {
      say("  {:<15} {:.2e}", difference.name, difference.relative);
    }
    say("verify: distributed run equals one process on the whole batch: {} (max relative difference {:.2e}, "
        "limit "
        "{:.0e})",
        equal ? "yes" : "no", largest, limit);
    say("verify: loss fell: {} (mean of the first {} steps {:.4f}, of the last {} {:.4f})",
        trend.fell() ? "yes" : "no", trend.window, trend.first, trend.window, trend.last);
    failed = equal && trend.fell() ? 0 : 1;
  }
  comm_.allReduce(&failed, &failed, 1, ncclMax);
  return failed == 0;
}

template <class T>
void Training<T>::conclude() const {
  if (options_.fault) {
    throw SharedFailure("the fault of --inject-fault was not noticed: the check of replicas is broken");
  }
  if (first_difference_) {
    say("divergence is what --no-average is for: exit status 0");
    say("replicas identical after every step: no (first difference after step {})", *first_difference_);
    return;
  }
  say("replicas identical after every step: yes ({}/{})", options_.steps, options_.steps);
  if (!options_.average)
    throw SharedFailure("--no-average: replicas did not diverge; do all ranks see equal slices?");
}

}  // namespace

void train(Comm& comm, const Options& options, const Corpus& corpus) {
  const ModelShape shape = modelShape(options, corpus);
  if (options.precision == Precision::kFp64) {
    Training<double>(comm, options, corpus, shape).run();
  } else {
    Training<float>(comm, options, corpus, shape).run();
  }
}

}  // namespace tutti::train
