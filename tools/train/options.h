// The command line of tutti-train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/agreement.h"
#include "tools/train/data.h"
#include "tools/train/model.h"
#include "tools/train/optimizer.h"

namespace tutti::train {

enum class Precision { kFp32, kFp64 };

/// One bit of one parameter is flipped on `rank` after step `step`, before the check of that step.
struct Fault {
  std::size_t rank = 0;
  std::size_t step = 0;  ///< counts from 1
};

struct Options {
  std::size_t steps = 100;
  std::size_t batch = 64;  ///< examples per step, over all ranks
  std::size_t context = 8;
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
  std::optional<Fault> fault;
};

/// Reads and checks the command line. Nothing when it only asked for help or the version, which is printed.
/// Throws UsageError, naming the option, its value and what is accepted.
std::optional<Options> parseOptions(int argc, char** argv);

/// Checks what depends on the number of ranks. Throws UsageError.
void checkAgainstRanks(const Options& options, std::size_t nranks);

/// The network that the options and the text ask for. Throws UsageError when it has too many parameters.
ModelShape modelShape(const Options& options, const Corpus& corpus);

std::string optimizerName(OptimizerKind kind);
std::string precisionName(Precision precision);

/// All that ranks must agree on, as text.
std::vector<Setting> settingsToAgreeOn(const Options& options, const Corpus& corpus);

}  // namespace tutti::train
