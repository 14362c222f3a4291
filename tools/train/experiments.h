// Short runs beside the training run, for the page of --html.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/training.h"

namespace tutti::train {

/// What the averaging of one step moved, for one way to fill the step with work.
struct TrafficPoint {
  std::string series;        ///< "batch", "sequence" (other lengths) or "uneven"
  std::size_t batch = 0;     ///< sequences over all ranks
  std::size_t sequence = 0;  ///< examples per sequence
  std::size_t gradient_bytes = 0;
  std::uint64_t payload_bytes = 0;  ///< over all ranks
};

/// The same training with and without averaging. Spread: see Training::spread.
struct DivergencePoint {
  std::size_t step = 0;
  double spread_without_averaging = 0;
  double spread_with_averaging = 0;
  std::vector<std::uint64_t> hashes_without_averaging;  ///< of each rank's state
};

struct Experiments {
  std::vector<TrafficPoint> traffic;
  std::vector<DivergencePoint> divergence;
};

/// Runs them from the same seed as `setup`, without its fault; the divergence for `steps` steps. Collective.
template <class T>
Experiments runExperiments(World& world, const Corpus& corpus, const TrainingSetup& setup, std::size_t steps);

extern template Experiments runExperiments<float>(World&, const Corpus&, const TrainingSetup&, std::size_t);
extern template Experiments runExperiments<double>(World&, const Corpus&, const TrainingSetup&, std::size_t);

}  // namespace tutti::train
