#include "tools/train/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "tools/train/errors.h"

namespace tutti::train {
namespace {

// So that parameters, gradient, optimizer state and averaging buffers stay within a few GiB.
constexpr std::size_t kMaxParameters = std::size_t{1} << 26;
constexpr double kDefaultSgdRate = 0.03;
constexpr double kDefaultAdamRate = 0.003;

/// What CLI11 fills before it is checked: wide and signed, so that a value out of range is seen as it was
/// given.
struct Raw {
  std::int64_t steps = 100;
  std::int64_t batch = 64;
  std::int64_t context = 8;
  std::int64_t embedding = 16;
  std::int64_t hidden = 128;
  std::int64_t layers = 2;
  std::int64_t log_every = 10;
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::string optimizer = "sgd";
  std::string precision = "fp32";
  std::string seed = "1";  // a text: CLI11 wraps a negative number around
  std::string fault;
  bool no_average = false;
};

std::size_t countWithin(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    throw UsageError(fmt::format("{} {}: must be {} to {}", name, value, low, high));
  }
  return static_cast<std::size_t>(value);
}

bool choose(const char* name, const std::string& value, const char* first, const char* second) {
  if (value != first && value != second) {
    throw UsageError(fmt::format("{} {}: must be {} or {}", name, value, first, second));
  }
  return value == second;
}

Fault parseFault(const std::string& text, std::size_t steps) {
  const char* end = text.data() + text.size();
  Fault fault;
  const auto rank = std::from_chars(text.data(), end, fault.rank);
  const bool has_rank = rank.ec == std::errc() && rank.ptr != end && *rank.ptr == ':';
  const auto step = std::from_chars(has_rank ? rank.ptr + 1 : end, end, fault.step);
  if (!has_rank || step.ec != std::errc() || step.ptr != end) {
    throw UsageError(fmt::format("--inject-fault {}: must be RANK:STEP, such as 2:17", text));
  }
  if (fault.step < 1 || fault.step > steps) {
    throw UsageError(fmt::format("--inject-fault {}: the step must be 1 to {} (--steps)", text, steps));
  }
  return fault;
}

std::uint64_t parseSeed(const std::string& text) {
  const char* end = text.data() + text.size();
  std::uint64_t seed = 0;
  const auto parsed = std::from_chars(text.data(), end, seed);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    throw UsageError(
        fmt::format("--seed {}: must be 0 to {}", text, std::numeric_limits<std::uint64_t>::max()));
  }
  return seed;
}

OptimizerSettings optimizerFrom(const Raw& raw) {
  OptimizerSettings settings;
  const bool adam = choose("--optimizer", raw.optimizer, "sgd", "adam");
  settings.kind = adam ? OptimizerKind::kAdam : OptimizerKind::kSgd;
  settings.learning_rate = raw.learning_rate.value_or(adam ? kDefaultAdamRate : kDefaultSgdRate);
  // Written so that NaN is refused.
  if (!(settings.learning_rate > 0 && settings.learning_rate <= 10)) {
    throw UsageError(fmt::format("--lr {}: must be more than 0 and at most 10", settings.learning_rate));
  }
  if (adam && raw.momentum) throw UsageError("--momentum: belongs to --optimizer sgd; adam has its own");
  settings.momentum = raw.momentum.value_or(settings.momentum);
  if (!(settings.momentum >= 0 && settings.momentum < 1)) {
    throw UsageError(fmt::format("--momentum {}: must be at least 0 and less than 1", settings.momentum));
  }
  return settings;
}

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
}

void addOptions(CLI::App& app, Raw& raw, Options& options) {
  app.set_version_flag("--version", std::string("tutti-train ") + TUTTI_VERSION);
  app.add_option("--steps", raw.steps, "Averaged steps")->capture_default_str();
  app.add_option("--batch", raw.batch, "Examples per step over all ranks; a multiple of the number of ranks")
      ->capture_default_str();
  app.add_option("--context", raw.context, "Characters that the network sees")->capture_default_str();
  app.add_option("--embedding", raw.embedding, "Numbers per character")->capture_default_str();
  app.add_option("--hidden", raw.hidden, "Width of the dense layers")->capture_default_str();
  app.add_option("--layers", raw.layers, "Dense layers, 1 or 2")->capture_default_str();
  app.add_option("--lr", raw.learning_rate,
                 fmt::format("Learning rate [{} for sgd, {} for adam]", kDefaultSgdRate, kDefaultAdamRate));
  app.add_option("--momentum", raw.momentum, "Momentum of sgd [0.9]");
  app.add_option("--optimizer", raw.optimizer, "sgd or adam")->capture_default_str();
  app.add_option("--precision", raw.precision, "fp32 or fp64")->capture_default_str();
  app.add_option("--seed", raw.seed, "Seed of the weights and of the batches")->capture_default_str();
  app.add_option("--data", options.data, "Text to learn [a licence text of the system]");
  app.add_option("--log-every", raw.log_every, "Steps between lines of output")->capture_default_str();
  app.add_flag("--verify", options.verify, "Check that the run equals one process on the whole batch");
  app.add_flag("--no-average", raw.no_average, "Do not average: shows that the replicas then differ");
  app.add_option("--inject-fault", raw.fault,
                 "RANK:STEP: flip one bit on a rank after a step, to see it found");
}

Options checked(const Raw& raw, Options options) {
  options.steps = countWithin("--steps", raw.steps, 1, 1'000'000);
  options.batch = countWithin("--batch", raw.batch, 1, 8192);
  options.context = countWithin("--context", raw.context, 1, 64);
  options.embedding = countWithin("--embedding", raw.embedding, 1, 256);
  options.hidden = countWithin("--hidden", raw.hidden, 1, 4096);
  options.layers = countWithin("--layers", raw.layers, 1, 2);
  options.log_every = countWithin("--log-every", raw.log_every, 1, 1'000'000);
  options.seed = parseSeed(raw.seed);
  options.optimizer = optimizerFrom(raw);
  options.precision =
      choose("--precision", raw.precision, "fp32", "fp64") ? Precision::kFp64 : Precision::kFp32;
  options.average = !raw.no_average;
  if (!raw.fault.empty()) options.fault = parseFault(raw.fault, options.steps);
  checkCombination(options);
  return options;
}

}  // namespace

std::optional<Options> parseOptions(int argc, char** argv) {
  Raw raw;
  Options options;
  CLI::App app(
      "Data-parallel training of a small next-character network; checks after every step that all\n"
      "replicas are bit-identical. Start it on several ranks with: tutti-run -n 4 tutti-train --verify",
      "tutti-train");
  addOptions(app, raw, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return std::nullopt;
    }
    throw UsageError(fmt::format("{} (tutti-train --help lists the options)", error.what()));
  }
  options = checked(raw, std::move(options));
  if (app.count("--data") == 0) options.data = defaultDataPath();
  return options;
}

void checkAgainstRanks(const Options& options, std::size_t nranks) {
  if (options.batch % nranks != 0) {
    throw UsageError(
        fmt::format("--batch {} is not a multiple of the {} ranks: each rank takes an equal slice",
                    options.batch, nranks));
  }
  if (!options.average && nranks == 1) {
    throw UsageError("--no-average: one replica cannot diverge; start 2 or more ranks with tutti-run");
  }
  if (options.fault && nranks == 1) {
    throw UsageError(
        "--inject-fault: one replica has none to differ from; start 2 or more ranks with tutti-run");
  }
  if (options.fault && options.fault->rank >= nranks) {
    throw UsageError(fmt::format("--inject-fault {}:{}: there is no rank {}; ranks are 0 to {}",
                                 options.fault->rank, options.fault->step, options.fault->rank, nranks - 1));
  }
}

ModelShape modelShape(const Options& options, const Corpus& corpus) {
  const ModelShape shape{corpus.vocabulary, options.context, options.embedding, options.hidden,
                         options.layers};
  if (parameterCount(shape) > kMaxParameters) {
    throw UsageError(
        fmt::format("--context, --embedding, --hidden, --layers: {} parameters; at most {} are allowed",
                    parameterCount(shape), kMaxParameters));
  }
  return shape;
}

std::string optimizerName(OptimizerKind kind) { return kind == OptimizerKind::kAdam ? "adam" : "sgd"; }

std::string precisionName(Precision precision) { return precision == Precision::kFp64 ? "fp64" : "fp32"; }

std::vector<Setting> settingsToAgreeOn(const Options& options, const Corpus& corpus) {
  const std::string fault =
      options.fault ? fmt::format("{}:{}", options.fault->rank, options.fault->step) : "none";
  return {{"data size", fmt::format("{} bytes", corpus.symbols.size())},
          {"data hash", fmt::format("{:016x}", corpus.hash)},
          {"--steps", std::to_string(options.steps)},
          {"--batch", std::to_string(options.batch)},
          {"--context", std::to_string(options.context)},
          {"--embedding", std::to_string(options.embedding)},
          {"--hidden", std::to_string(options.hidden)},
          {"--layers", std::to_string(options.layers)},
          {"--optimizer", optimizerName(options.optimizer.kind)},
          {"--lr", fmt::format("{}", options.optimizer.learning_rate)},
          {"--momentum", fmt::format("{}", options.optimizer.momentum)},
          {"--precision", precisionName(options.precision)},
          {"--seed", std::to_string(options.seed)},
          {"--verify", options.verify ? "yes" : "no"},
          {"--no-average", options.average ? "no" : "yes"},
          {"--inject-fault", fault}};
}

}  // namespace tutti::train
