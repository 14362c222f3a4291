#include "tools/train/scaling.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/train/child_run.h"
#include "tools/train/errors.h"
#include "tools/train/json_report.h"

namespace tutti::train {
namespace {

using Json = nlohmann::ordered_json;

/// Steps in which memory is touched for the first time.
constexpr std::size_t kWarmUpSteps = 2;
constexpr std::size_t kMaxSequences = 8192;

std::size_t usableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return std::thread::hardware_concurrency();
  return static_cast<std::size_t>(CPU_COUNT(&cores));
}

std::size_t mostRanks(const Options& options, std::size_t cores) {
  std::size_t ranks = options.ranks.value_or(std::max<std::size_t>(2, cores));
  const char* launched = std::getenv("TUTTI_WORLD_SIZE");
  if (!options.ranks && launched != nullptr) ranks = std::strtoul(launched, nullptr, 10);
  if (ranks < 1 || ranks * options.batch > kMaxSequences) {
    throw UsageError(
        fmt::format("--scaling: {} ranks with {} sequences each (--batch) are {} per step; at most {} "
                    "are allowed",
                    ranks, options.batch, ranks * options.batch, kMaxSequences));
  }
  return ranks;
}

std::vector<std::string> argumentsFor(const Options& options, std::size_t ranks, const std::string& json) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* name, const auto& value) {
    arguments.insert(arguments.end(), {name, fmt::format("{}", value)});
  };
  add("--device", device::choiceName(options.device));
  add("--steps", options.steps);
  add("--batch", options.batch * ranks);
  add("--sequence", options.window.sequence);
  add("--context", options.window.context);
  add("--embedding", options.embedding);
  add("--hidden", options.hidden);
  add("--layers", options.layers);
  add("--optimizer", optimizerName(options.optimizer.kind));
  add("--lr", options.optimizer.learning_rate);
  if (options.optimizer.kind == OptimizerKind::kSgd) add("--momentum", options.optimizer.momentum);
  add("--dtype", precisionName(options.precision));
  add("--seed", options.seed);
  add("--data", options.data);
  add("--json", json);
  return arguments;
}

ScalingRow measure(const Options& options, std::size_t ranks) {
  const ScratchFile file;
  runOnRanks(ranks, argumentsFor(options, ranks, file.path()));
  const Json document = Json::parse(file.content(), nullptr, false);
  if (document.is_discarded()) {
    throw std::runtime_error(
        fmt::format("--scaling: the run on {} rank{} wrote no result", ranks, ranks == 1 ? "" : "s"));
  }
  return scalingRow(document);
}

void printHeader(const Options& options, const ScalingResult& result, std::size_t most, std::FILE* out) {
  fmt::print(
      out,
      "tutti-train {} --scaling: 1 to {} ranks on {} core{}\n"
      "  weak scaling: {} sequences of {} character{} per rank and step, so that more ranks do more work\n"
      "  a step is gradient, all-reduce, update and the check of replicas; means of {} steps\n",
      TUTTI_VERSION, most, result.cores, result.cores == 1 ? "" : "s", options.batch, options.window.sequence,
      options.window.sequence == 1 ? "" : "s",
      options.steps > 2 * kWarmUpSteps ? options.steps - kWarmUpSteps : options.steps);
  fmt::print(out, "{:>5}  {:>9}  {:>7}  {:>11}  {:>8}  {:>10}  {:>10}\n", "ranks", "ms/step", "spread",
             "samples/s", "speed-up", "efficiency", "all-reduce");
}

void printRow(const ScalingResult& result, const ScalingRow& row, std::FILE* out) {
  fmt::print(out, "{:>5}  {:>9.3f}  {:>5.0f} %  {:>11.0f}  {:>8.2f}  {:>8.0f} %  {:>8.1f} %{}\n", row.ranks,
             1e3 * row.mean_step_seconds, 100 * row.spread, row.samples_per_second, result.speedUp(row),
             100 * result.efficiency(row), 100 * row.all_reduce_share,
             row.ranks > result.cores ? "  ranks share cores" : "");
}

}  // namespace

ScalingRow scalingRow(const Json& document) {
  std::vector<double> steps;
  double all = 0;
  double all_reduce = 0;
  const Json& records = document.at("steps");
  const std::size_t made = records.size() - 1;  // the first is the state before any step
  const std::size_t first = 1 + (made > 2 * kWarmUpSteps ? kWarmUpSteps : 0);
  for (std::size_t i = first; i < records.size(); ++i) {
    const Json& seconds = records[i].at("seconds");
    const double reduce = seconds.at("all_reduce").get<double>();
    const double step = seconds.at("compute").get<double>() + reduce + seconds.at("update").get<double>() +
                        seconds.at("check").get<double>();
    steps.push_back(step);
    all += step;
    all_reduce += reduce;
  }
  std::sort(steps.begin(), steps.end());
  ScalingRow row;
  row.ranks = document.at("configuration").at("ranks").get<std::size_t>();
  row.steps = steps.size();
  row.mean_step_seconds = all / static_cast<double>(steps.size());
  row.spread = (steps[steps.size() * 9 / 10] - steps[steps.size() / 10]) / row.mean_step_seconds;
  row.all_reduce_share = all_reduce / all;
  row.samples_per_second =
      document.at("configuration").at("batch").at("sequences").get<double>() / row.mean_step_seconds;
  return row;
}

ScalingResult measureScaling(const Options& options, std::FILE* out) {
  ScalingResult result;
  result.cores = usableCores();
  const std::size_t most = mostRanks(options, result.cores);
  // What the runs would refuse, said once and beforehand.
  trainingSetup(options, loadCorpus(options.data, options.window), 1);
  printHeader(options, result, most, out);
  for (std::size_t ranks = 1; ranks <= most; ++ranks) {
    result.rows.push_back(measure(options, ranks));
    printRow(result, result.rows.back(), out);
  }
  if (most > result.cores) {
    fmt::print(out, "ranks share cores: this process may use {0}, so the speed-up is at most about {0}\n",
               result.cores);
  }
  return result;
}

Json scalingDocument(const Options& options, const ScalingResult& result) {
  Json document = startDocument("scaling");
  document["kind"] = "weak";
  document["cores"] = result.cores;
  document["sequences_per_rank"] = options.batch;
  document["sequence"] = options.window.sequence;
  document["dtype"] = precisionName(options.precision);
  document["rows"] = Json::array();
  for (const ScalingRow& row : result.rows) {
    document["rows"].push_back({{"ranks", row.ranks},
                                {"ranks_share_cores", row.ranks > result.cores},
                                {"steps", row.steps},
                                {"mean_step_seconds", row.mean_step_seconds},
                                {"spread", row.spread},
                                {"samples_per_second", row.samples_per_second},
                                {"speed_up", result.speedUp(row)},
                                {"efficiency", result.efficiency(row)},
                                {"all_reduce_share", row.all_reduce_share}});
  }
  return document;
}

}  // namespace tutti::train
