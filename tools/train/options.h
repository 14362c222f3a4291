// The command line of tutti-train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/device/choice.h"
#include "tools/train/agreement.h"
#include "tools/train/data.h"
#include "tools/train/model.h"
#include "tools/train/optimizer.h"
#include "tools/train/traffic.h"
#include "tools/train/training.h"

namespace tutti::train {

enum class Precision { kFp32, kFp64 };

enum class Mode { kTrain, kScaling, kExplainTraffic };

struct Options {
  Mode mode = Mode::kTrain;
  device::Choice device = device::Choice::automatic;
  std::size_t steps = 100;
  std::size_t batch = 64;  ///< sequences per step, over all ranks; per rank in Mode::kScaling
  Window window{8, 1};
  std::size_t embedding = 16;
  std::size_t hidden = 128;
  std::size_t layers = 2;
  OptimizerSettings optimizer;
  Precision precision = Precision::kFp32;
  std::uint64_t seed = 1;
  std::string data;  ///< path of the text
  std::size_t log_every = 10;
  bool verify = false;
  bool average = true;
  bool uneven = false;   ///< counts by unevenCounts instead of batch
  bool weighted = true;  ///< uneven only
  std::optional<Fault> fault;
  std::string json;                  ///< path, "-" for standard output, empty for none
  std::string html;                  ///< path, empty for none
  std::optional<std::size_t> ranks;  ///< Mode::kScaling: the most ranks
  TrafficQuestion traffic;           ///< Mode::kExplainTraffic
};

/// Reads and checks the command line. Nothing when it only asked for help or the version, which is printed.
/// Throws UsageError, naming the option, its value and what is accepted.
std::optional<Options> parseOptions(int argc, char** argv);

/// Checks what depends on other options. Throws UsageError.
void checkCombination(const Options& options);

/// Checks what depends on the number of ranks. Throws UsageError.
void checkAgainstRanks(const Options& options, std::size_t nranks);

/// What `nranks` ranks train. Throws UsageError when the network has too many parameters.
TrainingSetup trainingSetup(const Options& options, const Corpus& corpus, std::size_t nranks);

std::string optimizerName(OptimizerKind kind);
std::string precisionName(Precision precision);

/// All that ranks must agree on, as text.
std::vector<Setting> settingsToAgreeOn(const Options& options, const Corpus& corpus);

}  // namespace tutti::train
