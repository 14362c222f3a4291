#include "tools/train/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "tools/train/errors.h"
#include "tools/train/option_values.h"

namespace tutti::train {
namespace {

constexpr double kDefaultSgdRate = 0.03;
constexpr double kDefaultAdamRate = 0.003;
constexpr std::int64_t kMaxScalingRanks = 64;
constexpr std::int64_t kMaxTrafficRanks = 100'000;

constexpr const char* kScaling = "--scaling";
constexpr const char* kExplainTraffic = "--explain-traffic";

/// What CLI11 fills before it is checked: wide and signed, so that a value out of range is seen as it was
/// given.
struct Raw {
  std::int64_t steps = 100;
  std::int64_t batch = 64;
  std::int64_t sequence = 1;
  std::int64_t context = 8;
  std::int64_t embedding = 16;
  std::int64_t hidden = 128;
  std::int64_t layers = 2;
  std::int64_t log_every = 10;
  std::optional<std::int64_t> ranks;
  std::int64_t hosts = 1;
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::string device = "auto";
  std::string optimizer = "sgd";
  std::string dtype = "fp32";
  std::string seed = "1";  // a text: CLI11 wraps a negative number around
  std::optional<std::string> fault;
  std::string params;
  std::string link_gbps = "10,25,100,200,400,800,3600";
  bool no_average = false;
  bool no_weights = false;
  bool scaling = false;
  bool explain_traffic = false;
};

/// In which modes an option means something.
struct OptionUse {
  const char* name;
  bool train;
  bool scaling;
  bool explain;
};
constexpr std::array kUses{
    OptionUse{"--device", true, true, false},      OptionUse{"--steps", true, true, false},
    OptionUse{"--batch", true, true, false},       OptionUse{"--sequence", true, true, false},
    OptionUse{"--context", true, true, false},     OptionUse{"--embedding", true, true, false},
    OptionUse{"--hidden", true, true, false},      OptionUse{"--layers", true, true, false},
    OptionUse{"--lr", true, true, false},          OptionUse{"--momentum", true, true, false},
    OptionUse{"--optimizer", true, true, false},   OptionUse{"--dtype", true, true, true},
    OptionUse{"--seed", true, true, false},        OptionUse{"--data", true, true, false},
    OptionUse{"--log-every", true, false, false},  OptionUse{"--verify", true, false, false},
    OptionUse{"--no-average", true, false, false}, OptionUse{"--uneven", true, false, false},
    OptionUse{"--no-weights", true, false, false}, OptionUse{"--inject-fault", true, false, false},
    OptionUse{"--html", true, false, false},       OptionUse{"--json", true, true, true},
    OptionUse{"--ranks", false, true, true},       OptionUse{"--params", false, false, true},
    OptionUse{"--link-gbps", false, false, true},  OptionUse{"--hosts", false, false, true},
};

void checkUses(const CLI::App& app, Mode mode) {
  for (const OptionUse& use : kUses) {
    if (app.count(use.name) == 0) continue;
    if (mode == Mode::kTrain && !use.train) {
      throw UsageError(fmt::format("{}: belongs to {}{}", use.name, use.scaling ? "--scaling or " : "",
                                   use.scaling
                                       ? "--explain-traffic; tutti-run -n sets the ranks of a training run"
                                       : kExplainTraffic));
    }
    if ((mode == Mode::kScaling && !use.scaling) || (mode == Mode::kExplainTraffic && !use.explain)) {
      throw UsageError(fmt::format("{}: has no meaning with {}", use.name,
                                   mode == Mode::kScaling ? kScaling : kExplainTraffic));
    }
  }
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

void addTraining(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("--device", raw.device,
                 "Where to compute: host, cuda, or auto: on GPUs where one can be used")
      ->capture_default_str();
  app.add_option("--steps", raw.steps, "Averaged steps")->capture_default_str();
  app.add_option("--batch", raw.batch,
                 "Sequences per step over all ranks, a multiple of their number; with --scaling, per rank")
      ->capture_default_str();
  app.add_option("--sequence", raw.sequence, "Characters of a sequence that are predicted")
      ->capture_default_str();
  app.add_option("--context", raw.context, "Characters that the network sees")->capture_default_str();
  app.add_option("--embedding", raw.embedding, "Numbers per character")->capture_default_str();
  app.add_option("--hidden", raw.hidden, "Width of the dense layers")->capture_default_str();
  app.add_option("--layers", raw.layers, "Dense layers, 1 or 2")->capture_default_str();
  app.add_option("--lr", raw.learning_rate,
                 fmt::format("Learning rate [{} for sgd, {} for adam]", kDefaultSgdRate, kDefaultAdamRate));
  app.add_option("--momentum", raw.momentum, "Momentum of sgd [0.9]");
  app.add_option("--optimizer", raw.optimizer, "sgd or adam")->capture_default_str();
  app.add_option("--dtype,--precision", raw.dtype,
                 "fp32 or fp64; with --explain-traffic " + gradientTypeNames())
      ->capture_default_str();
  app.add_option("--seed", raw.seed, "Seed of the weights and of the batches")->capture_default_str();
  app.add_option("--data", options.data, "Text to learn [a licence text of the system]");
  app.add_option("--log-every", raw.log_every, "Steps between lines of output")->capture_default_str();
}

void addChecks(CLI::App& app, Raw& raw, Options& options) {
  app.add_flag("--verify", options.verify, "Check that the run equals one process on the whole batch");
  app.add_flag("--uneven", options.uneven,
               "Ranks with 4 and 400 sequences in turn, gradients weighted by these counts");
  app.add_flag("--no-weights", raw.no_weights,
               "With --uneven: do not weigh; shows that the plain mean is wrong");
  app.add_flag("--no-average", raw.no_average, "Do not average: shows that the replicas then differ");
  app.add_option("--inject-fault", raw.fault,
                 "RANK:STEP: flip one bit on a rank after a step, to see it found");
  app.add_option("--json", options.json, "Write all that was found to this file; - is standard output");
  app.add_option("--html", options.html, "Write a page with plots to this file; makes extra short runs");
}

void addOtherModes(CLI::App& app, Raw& raw) {
  app.add_flag(kScaling, raw.scaling,
               "Start runs of 1 to --ranks ranks and compare their speeds (a fixed batch per rank)");
  app.add_flag(kExplainTraffic, raw.explain_traffic,
               "Train nothing; say what averaging a model of --params on --ranks devices moves");
  app.add_option("--ranks", raw.ranks,
                 "Most ranks of --scaling [one per core]; devices of --explain-traffic");
  app.add_option("--hosts", raw.hosts,
                 "Hosts that the devices of --explain-traffic are on, equally many on each")
      ->capture_default_str();
  app.add_option("--params", raw.params, "Parameters of the model, such as 7e9");
  app.add_option("--link-gbps", raw.link_gbps, "Speeds of links in Gbit/s, in each direction")
      ->capture_default_str();
}

Precision precisionFrom(const Raw& raw) {
  const bool known = raw.dtype == "fp32" || raw.dtype == "fp64";
  if (!known && findGradientType(raw.dtype) != nullptr) {
    throw UsageError(fmt::format("--dtype {}: must be fp32 or fp64 to train; --explain-traffic takes {} too",
                                 raw.dtype, raw.dtype));
  }
  return choose("--dtype", raw.dtype, "fp32", "fp64") ? Precision::kFp64 : Precision::kFp32;
}

Mode modeOf(const Raw& raw) {
  if (raw.scaling && raw.explain_traffic) {
    throw UsageError("--scaling with --explain-traffic: one measures, the other computes; choose one");
  }
  if (raw.scaling) return Mode::kScaling;
  return raw.explain_traffic ? Mode::kExplainTraffic : Mode::kTrain;
}

TrafficQuestion trafficFrom(const Raw& raw) {
  if (raw.params.empty()) throw UsageError("--explain-traffic: needs --params, such as --params 7e9");
  if (!raw.ranks) throw UsageError("--explain-traffic: needs --ranks, such as --ranks 8");
  const GradientType* type = findGradientType(raw.dtype);
  if (type == nullptr) {
    throw UsageError(fmt::format("--dtype {}: must be {}", raw.dtype, gradientTypeNames()));
  }
  const std::uint64_t ranks = countWithin("--ranks", *raw.ranks, 1, kMaxTrafficRanks);
  const std::uint64_t hosts = countWithin("--hosts", raw.hosts, 1, kMaxTrafficRanks);
  if (ranks % hosts != 0) {
    throw UsageError(
        fmt::format("--hosts {}: must divide the {} ranks, so that hosts have equally many", hosts, ranks));
  }
  return {parseParameters(raw.params), *type, ranks, hosts, parseLinkGbps(raw.link_gbps)};
}

Options checked(const Raw& raw, Options options) {
  options.mode = modeOf(raw);
  if (options.mode == Mode::kExplainTraffic) {
    options.traffic = trafficFrom(raw);
    return options;
  }
  try {
    options.device = device::parseChoice(raw.device);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--device: {}", error.what()));
  }
  options.steps = countWithin("--steps", raw.steps, 1, 1'000'000);
  options.batch = countWithin("--batch", raw.batch, 1, 8192);
  options.window = {countWithin("--context", raw.context, 1, 64),
                    countWithin("--sequence", raw.sequence, 1, 1024)};
  options.embedding = countWithin("--embedding", raw.embedding, 1, 256);
  options.hidden = countWithin("--hidden", raw.hidden, 1, 4096);
  options.layers = countWithin("--layers", raw.layers, 1, 2);
  options.log_every = countWithin("--log-every", raw.log_every, 1, 1'000'000);
  options.seed = parseSeed(raw.seed);
  options.optimizer = optimizerFrom(raw);
  options.precision = precisionFrom(raw);
  options.average = !raw.no_average;
  options.weighted = !raw.no_weights;
  if (raw.fault) options.fault = parseFault(*raw.fault, options.steps);
  if (raw.ranks) options.ranks = countWithin("--ranks", *raw.ranks, 1, kMaxScalingRanks);
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
  app.set_version_flag("--version", std::string("tutti-train ") + TUTTI_VERSION);
  addTraining(app, raw, options);
  addChecks(app, raw, options);
  addOtherModes(app, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      if (!std::cout.flush()) throw std::runtime_error("cannot write to standard output");
      return std::nullopt;
    }
    throw UsageError(fmt::format("{} (tutti-train --help lists the options)", error.what()));
  }
  checkUses(app, modeOf(raw));
  for (const char* name : {"--json", "--html"}) {
    if (app.count(name) > 0 && app.get_option(name)->as<std::string>().empty()) {
      throw UsageError(fmt::format("{}: needs the path of a file", name));
    }
  }
  if (options.uneven && app.count("--batch") > 0) {
    throw UsageError("--batch with --uneven: --uneven sets the sequences of each rank; leave --batch out");
  }
  options = checked(raw, std::move(options));
  if (app.count("--data") == 0 && options.mode != Mode::kExplainTraffic) options.data = defaultDataPath();
  return options;
}

}  // namespace tutti::train
