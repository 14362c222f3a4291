#include "tools/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "tools/train/errors.h"
#include "tools/train/hosts.h"

namespace tutti::train {
namespace {

/// Steps of the runs that --html adds, at most: what they show is there after a few.
constexpr std::size_t kExperimentSteps = 60;

/// The run on whole batches that --verify compares with. Rank 0 trains it in step with the distributed run,
/// so that no rank waits for longer than a step.
template <class T>
struct WholeBatchRun {
  Replica<T> replica;
  Array<T> gradient;

  WholeBatchRun(const TrainingSetup& setup, Kernels<T>& kernels)
      : replica(setup.shape, setup.optimizer, setup.seed, kernels),
        gradient(kernels.device(), replica.parameters().size()) {}

  void step(std::size_t step, const Examples& examples) {
    replica.lossAndGradient(examples, gradient.span());
    replica.update(step, gradient.span());
  }
};

/// Of rank 0, for the reports.
std::string deviceText(const device::Device& device) {
  const device::DeviceInfo info = device.info();
  if (device.kind() == device::Kind::host) return "host memory, " + info.name;
  return fmt::format("cuda, {} [{}]", info.name, info.place);
}

template <class T>
class Run {
 public:
  Run(World& world, const Options& options, const Corpus& corpus, const Console& console, bool keep_steps);

  RunRecord run();

 private:
  void steps();
  void step(std::size_t step);
  void judge(const StepRecord& record);
  void verify();
  void conclude() const;

  World& world_;
  const Options& options_;
  const Corpus& corpus_;
  const Console& console_;
  bool keep_steps_;
  Training<T> training_;
  std::optional<WholeBatchRun<T>> whole_batch_;
  RunRecord record_;
};

template <class T>
Run<T>::Run(World& world, const Options& options, const Corpus& corpus, const Console& console,
            bool keep_steps)
    : world_(world),
      options_(options),
      corpus_(corpus),
      console_(console),
      keep_steps_(keep_steps),
      training_(world, corpus, trainingSetup(options, corpus, world.size())) {
  const TrainingSetup& setup = training_.setup();
  const Replica<T>& replica = training_.replica();
  record_.configuration = {setup.counts.size(),
                           countHosts(world),
                           replica.parameters().size(),
                           training_.gradientBytes(),
                           replica.tensors(),
                           setup,
                           deviceText(world.seat().device())};
  if (options.verify && world.rank() == 0) {
    whole_batch_.emplace(setup, training_.kernels());
  }
}

template <class T>
RunRecord Run<T>::run() {
  console_.header(options_, corpus_, record_.configuration);
  try {
    steps();
  } catch (const SharedFailure& failure) {
    record_.failure = failure.what();
  }
  if (!options_.html.empty()) {
    record_.experiments =
        runExperiments<T>(world_, corpus_, training_.setup(), std::min(options_.steps, kExperimentSteps));
  }
  return std::move(record_);
}

template <class T>
void Run<T>::steps() {
  StepRecord start = training_.start();
  if (start.check.difference) {
    throw SharedFailure("replicas differ after step 0 (initialisation): " +
                        describe(*start.check.difference, record_.configuration.nranks));
  }
  console_.start(start);
  if (keep_steps_) record_.steps.push_back(std::move(start));
  for (std::size_t step = 1; step <= options_.steps; ++step) this->step(step);
  console_.summary(record_);
  if (options_.verify) verify();
  conclude();
}

template <class T>
void Run<T>::step(std::size_t step) {
  StepRecord record = training_.step(step);
  const bool first_or_last = step == 1 || step == options_.steps;
  if (first_or_last || step % options_.log_every == 0) console_.step(record);
  const bool first_difference = record.check.difference && !record_.totals.first_difference;
  addStep(record_, record, keep_steps_);
  if (first_difference) judge(record);
  // A NaN that an all-reduce brings to all ranks leaves them identical.
  if (!std::isfinite(record.loss)) {
    throw SharedFailure(fmt::format("the loss is {} at step {}", record.loss, step));
  }
  if (whole_batch_) {
    whole_batch_->step(step, gatherExamples(corpus_, options_.window, training_.batchOf(step)));
  }
}

template <class T>
void Run<T>::judge(const StepRecord& record) {
  if (options_.average) {
    throw SharedFailure(fmt::format("replicas differ after step {}: {}", record.step,
                                    describe(*record.check.difference, record_.configuration.nranks)));
  }
  console_.diverged(record);
}

/// Rank 0 judges, the others learn what failed.
template <class T>
void Run<T>::verify() {
  constexpr std::uint64_t kDiffers = 1;
  constexpr std::uint64_t kLossDidNotFall = 2;
  std::uint64_t failed = 0;
  if (whole_batch_) {
    VerifyResult result;
    result.limit = differenceLimit<T>(options_.optimizer.kind);
    whole_batch_->replica.fetch();
    result.tensors = compareTensors<T>(training_.replica().tensors(), training_.replica().hostParameters(),
                                       std::as_const(whole_batch_->replica).hostParameters());
    result.largest = largestDifference(result.tensors);
    result.trend = lossTrend(record_.losses);
    console_.verify(result);
    failed = (result.equal() ? 0 : kDiffers) + (result.trend.fell() ? 0 : kLossDidNotFall);
    record_.verify = std::move(result);
  }
  failed = world_.gatherWords(std::array{failed}).front();
  if (failed == 0) return;
  console_.verdict(record_);
  const bool differs = (failed & kDiffers) != 0;
  const bool did_not_fall = (failed & kLossDidNotFall) != 0;
  throw SharedFailure(fmt::format(
      "--verify failed: {}{}{}", differs ? "the run does not equal one process on the whole batch" : "",
      differs && did_not_fall ? ", and " : "", did_not_fall ? "the loss did not fall" : ""));
}

template <class T>
void Run<T>::conclude() const {
  if (options_.fault) {
    throw SharedFailure("the fault of --inject-fault was not noticed: the check of replicas is broken");
  }
  console_.verdict(record_);
  if (!options_.average && !record_.totals.first_difference) {
    throw SharedFailure("--no-average: replicas did not diverge; do all ranks see equal slices?");
  }
}

}  // namespace

RunRecord train(World& world, const Options& options, const Corpus& corpus, const Console& console,
                bool keep_steps) {
  if (options.precision == Precision::kFp64) {
    return Run<double>(world, options, corpus, console, keep_steps).run();
  }
  return Run<float>(world, options, corpus, console, keep_steps).run();
}

}  // namespace tutti::train
