// What options mean together, and for the ranks that there are.
#include <fmt/format.h>

#include "tools/train/division.h"
#include "tools/train/errors.h"
#include "tools/train/options.h"

namespace tutti::train {
namespace {

// So that parameters, gradient, optimizer state and averaging buffers stay within a few GiB.
constexpr std::size_t kMaxParameters = std::size_t{1} << 26;
// The same for the activations of a step in one process, as --verify holds them.
constexpr std::size_t kMaxExamples = 16384;
// So that the page stays one that a browser shows at once.
constexpr std::size_t kMaxHtmlSteps = 10'000;
constexpr std::size_t kMaxHtmlRanks = 64;

void checkReports(const Options& options) {
  if (options.html.empty()) return;
  if (options.html == "-") throw UsageError("--html -: must be the path of a file");
  if (options.html == options.json) {
    throw UsageError(fmt::format("--html and --json: both name {}; give each a file", options.html));
  }
  if (!options.average) {
    throw UsageError("--html with --no-average: the page measures a run without averaging anyway");
  }
  if (options.steps < 2 || options.steps > kMaxHtmlSteps) {
    throw UsageError(fmt::format("--html: needs --steps of 2 to {}; --json has no limit", kMaxHtmlSteps));
  }
}

void checkExamples(const Options& options, std::size_t sequences) {
  if (sequences * options.window.sequence > kMaxExamples) {
    throw UsageError(
        fmt::format("--sequence {}: {} sequences of {} characters are {} predictions per step; at "
                    "most {} are allowed",
                    options.window.sequence, sequences, options.window.sequence,
                    sequences * options.window.sequence, kMaxExamples));
  }
}

}  // namespace

void checkCombination(const Options& options) {
  if (options.verify && !options.average) {
    throw UsageError("--verify with --no-average: replicas that are not averaged cannot equal one process");
  }
  if (options.fault && !options.average) {
    throw UsageError("--inject-fault with --no-average: replicas that are not averaged differ anyway");
  }
  if (options.verify && options.steps < 2) {
    throw UsageError("--verify: needs --steps 2 or more, because it checks that the loss falls");
  }
  if (!options.weighted && !options.uneven) {
    throw UsageError("--no-weights: needs --uneven; equal slices have equal weights");
  }
  if (!options.weighted && !options.average) {
    throw UsageError("--no-weights with --no-average: without averaging there is nothing to weigh");
  }
  if (!options.uneven) checkExamples(options, options.batch);
  checkReports(options);
}

void checkAgainstRanks(const Options& options, std::size_t nranks) {
  const auto needsTwo = [&](bool given, const char* name, const char* why) {
    if (given && nranks == 1) {
      throw UsageError(fmt::format("{}: {}; start 2 or more ranks with tutti-run", name, why));
    }
  };
  needsTwo(!options.average, "--no-average", "one replica cannot diverge");
  needsTwo(options.fault.has_value(), "--inject-fault", "one replica has none to differ from");
  needsTwo(options.uneven, "--uneven", "one rank has no other to have more than");
  needsTwo(!options.html.empty(), "--html", "one replica has none to agree with");
  if (!options.html.empty() && nranks > kMaxHtmlRanks) {
    throw UsageError(
        fmt::format("--html: a page shows at most {} ranks; --json has no limit", kMaxHtmlRanks));
  }
  if (options.uneven) {
    checkExamples(options, totalOf(unevenCounts(nranks)));
  } else if (options.batch % nranks != 0) {
    throw UsageError(
        fmt::format("--batch {} is not a multiple of the {} ranks: each rank takes an equal slice (--uneven "
                    "gives ranks different ones)",
                    options.batch, nranks));
  }
  if (options.fault && options.fault->rank >= nranks) {
    throw UsageError(fmt::format("--inject-fault {}:{}: there is no rank {}; ranks are 0 to {}",
                                 options.fault->rank, options.fault->step, options.fault->rank, nranks - 1));
  }
}

TrainingSetup trainingSetup(const Options& options, const Corpus& corpus, std::size_t nranks) {
  TrainingSetup setup;
  setup.shape = {corpus.vocabulary, options.window.context, options.embedding, options.hidden,
                 options.layers};
  if (parameterCount(setup.shape) > kMaxParameters) {
    throw UsageError(
        fmt::format("--context, --embedding, --hidden, --layers: {} parameters; at most {} are allowed",
                    parameterCount(setup.shape), kMaxParameters));
  }
  setup.optimizer = options.optimizer;
  setup.seed = options.seed;
  setup.window = options.window;
  setup.counts = options.uneven ? unevenCounts(nranks) : evenCounts(options.batch, nranks);
  setup.averaging = options.uneven && options.weighted ? Averaging::kWeighted : Averaging::kMean;
  if (!options.average) setup.averaging = Averaging::kNone;
  setup.fault = options.fault;
  return setup;
}

std::string optimizerName(OptimizerKind kind) { return kind == OptimizerKind::kAdam ? "adam" : "sgd"; }

std::string precisionName(Precision precision) { return precision == Precision::kFp64 ? "fp64" : "fp32"; }

std::vector<Setting> settingsToAgreeOn(const Options& options, const Corpus& corpus) {
  const std::string fault =
      options.fault ? fmt::format("{}:{}", options.fault->rank, options.fault->step) : "none";
  const auto word = [](bool value) { return std::string(value ? "yes" : "no"); };
  return {{"data size", fmt::format("{} bytes", corpus.symbols.size())},
          {"data hash", fmt::format("{:016x}", corpus.hash)},
          {"--steps", std::to_string(options.steps)},
          {"--batch", std::to_string(options.batch)},
          {"--sequence", std::to_string(options.window.sequence)},
          {"--uneven", word(options.uneven)},
          {"--no-weights", word(!options.weighted)},
          {"--context", std::to_string(options.window.context)},
          {"--embedding", std::to_string(options.embedding)},
          {"--hidden", std::to_string(options.hidden)},
          {"--layers", std::to_string(options.layers)},
          {"--optimizer", optimizerName(options.optimizer.kind)},
          {"--lr", fmt::format("{}", options.optimizer.learning_rate)},
          {"--momentum", fmt::format("{}", options.optimizer.momentum)},
          {"--dtype", precisionName(options.precision)},
          {"--seed", std::to_string(options.seed)},
          {"--verify", word(options.verify)},
          {"--no-average", word(!options.average)},
          {"--inject-fault", fault},
          {"--html", word(!options.html.empty())}};
}

}  // namespace tutti::train
