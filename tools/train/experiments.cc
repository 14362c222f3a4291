#include "tools/train/experiments.h"

#include "tools/train/division.h"

namespace tutti::train {
namespace {

/// Work per step, in examples, that no point goes beyond: it would only take time.
constexpr std::size_t kMaxExamples = 4096;

template <class T>
TrafficPoint measureTraffic(World& world, const Corpus& corpus, const TrainingSetup& setup,
                            const char* series) {
  Training<T> training(world, corpus, setup);
  const StepRecord record = training.step(1);
  return {series, totalOf(setup.counts), setup.window.sequence, training.gradientBytes(),
          record.payload_bytes};
}

template <class T>
std::vector<TrafficPoint> trafficPoints(World& world, const Corpus& corpus, const TrainingSetup& base) {
  const std::size_t nranks = base.counts.size();
  std::vector<TrafficPoint> points;
  TrainingSetup setup = base;
  setup.averaging = Averaging::kMean;
  for (std::size_t per_rank = 1; per_rank <= 256; per_rank *= 4) {
    if (per_rank * nranks * base.window.sequence > kMaxExamples) break;
    setup.counts = evenCounts(per_rank * nranks, nranks);
    points.push_back(measureTraffic<T>(world, corpus, setup, "batch"));
  }
  for (const std::size_t sequence : {std::size_t{4}, std::size_t{16}}) {
    const bool fits = corpus.symbols.size() >= base.window.context + sequence;
    if (!fits || sequence == base.window.sequence) continue;
    setup.window.sequence = sequence;
    setup.counts = evenCounts(32 / sequence * nranks, nranks);
    points.push_back(measureTraffic<T>(world, corpus, setup, "sequence"));
  }
  setup.window = base.window;
  setup.counts = unevenCounts(nranks);
  setup.averaging = Averaging::kWeighted;
  if (totalOf(setup.counts) * base.window.sequence <= kMaxExamples) {
    points.push_back(measureTraffic<T>(world, corpus, setup, "uneven"));
  }
  return points;
}

template <class T>
std::vector<DivergencePoint> divergencePoints(World& world, const Corpus& corpus, const TrainingSetup& base,
                                              std::size_t steps) {
  TrainingSetup apart = base;
  apart.averaging = Averaging::kNone;
  Training<T> with(world, corpus, base);
  Training<T> without(world, corpus, apart);
  std::vector<DivergencePoint> points;
  points.push_back({0, without.spread(), with.spread(), without.start().check.state_hashes});
  for (std::size_t step = 1; step <= steps; ++step) {
    with.step(step);
    DivergencePoint point;
    point.step = step;
    point.hashes_without_averaging = without.step(step).check.state_hashes;
    point.spread_with_averaging = with.spread();
    point.spread_without_averaging = without.spread();
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

template <class T>
Experiments runExperiments(World& world, const Corpus& corpus, const TrainingSetup& setup,
                           std::size_t steps) {
  TrainingSetup sound = setup;
  sound.fault.reset();
  return {trafficPoints<T>(world, corpus, sound), divergencePoints<T>(world, corpus, sound, steps)};
}

template Experiments runExperiments<float>(World&, const Corpus&, const TrainingSetup&, std::size_t);
template Experiments runExperiments<double>(World&, const Corpus&, const TrainingSetup&, std::size_t);

}  // namespace tutti::train
