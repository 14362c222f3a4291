#include "tools/train/program.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/train/agreement.h"
#include "tools/train/console.h"
#include "tools/train/errors.h"
#include "tools/train/html_report.h"
#include "tools/train/json_report.h"
#include "tools/train/output_file.h"
#include "tools/train/scaling.h"
#include "tools/train/traffic.h"
#include "tools/train/train.h"

namespace tutti::train {
namespace {

/// Where words go: not to standard output when the JSON is there.
std::FILE* wordsOf(const Options& options) { return options.json == "-" ? stderr : stdout; }

std::optional<OutputFile> openReport(const char* option, const std::string& path) {
  if (path.empty()) return std::nullopt;
  return OutputFile(option, path);
}

/// What kept a report from being written; empty when nothing did.
std::string writeReports(const nlohmann::ordered_json& document, std::optional<OutputFile>& json,
                         std::optional<OutputFile>& html) {
  try {
    if (json) json->write(textOf(document));
    if (html) html->write(htmlPage(document));
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

bool isFirstRank() {
  const char* rank = std::getenv("TUTTI_RANK");
  return rank == nullptr || std::string(rank) == "0";
}

}  // namespace

int runTraining(const Options& options, const device::Devices& devices, const tuttiLaunch_t& launch) {
  checkAgainstRanks(options, static_cast<std::size_t>(launch.nranks));
  const Corpus corpus = loadCorpus(options.data, options.window);
  const bool first = launch.rank == 0;
  // Before the ranks meet, so that a path that cannot be written costs nothing.
  auto json = openReport("--json", first ? options.json : "");
  auto html = openReport("--html", first ? options.html : "");
  const Console console(static_cast<std::size_t>(launch.rank), wordsOf(options));

  World world(devices, launch);
  std::string failure;
  std::string unwritten;
  try {
    requireAgreement(world, settingsToAgreeOn(options, corpus));
    const RunRecord record = train(world, options, corpus, console, json.has_value() || html.has_value());
    failure = record.failure;
    unwritten = writeReports(trainingDocument(options, corpus, record), json, html);
    if (html && unwritten.empty()) console.wrote("page", html->path());
  } catch (const SharedFailure& shared) {
    failure = shared.what();
  }
  if (first && !failure.empty()) fmt::print(stderr, "tutti-train: {}\n", failure);
  if (!unwritten.empty()) fmt::print(stderr, "tutti-train: {}\n", unwritten);
  // A launcher stops all ranks when the first one fails: none leaves before rank 0 has spoken.
  if (!failure.empty()) world.barrier();
  return failure.empty() && unwritten.empty() ? 0 : kFailed;
}

int runScaling(const Options& options) {
  if (!isFirstRank()) return 0;
  auto json = openReport("--json", options.json);
  const ScalingResult result = measureScaling(options, wordsOf(options));
  if (json) json->write(textOf(scalingDocument(options, result)));
  return 0;
}

int runExplainTraffic(const Options& options) {
  if (!isFirstRank()) return 0;
  auto json = openReport("--json", options.json);
  fmt::print(wordsOf(options), "{}", trafficText(options.traffic));
  if (json) json->write(textOf(trafficDocument(options.traffic)));
  return 0;
}

}  // namespace tutti::train
