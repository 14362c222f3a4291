#include "tools/train/json_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/train/division.h"

namespace tutti::train {
namespace {

using Json = nlohmann::ordered_json;

/// Hashes as text: JSON readers keep only 53 bits of a number.
Json hexAll(const std::vector<std::uint64_t>& hashes) {
  Json result = Json::array();
  for (const std::uint64_t hash : hashes) result.push_back(fmt::format("{:016x}", hash));
  return result;
}

const char* averagingName(Averaging averaging) {
  switch (averaging) {
    case Averaging::kNone:
      return "none";
    case Averaging::kMean:
      return "mean";
    case Averaging::kWeighted:
      return "weighted";
  }
  return "";
}

Json configurationOf(const Options& options, const Corpus& corpus, const RunConfiguration& configuration) {
  const TrainingSetup& setup = configuration.setup;
  Json tensors = Json::array();
  for (const Tensor& tensor : configuration.tensors) {
    tensors.push_back({{"name", tensor.name}, {"rows", tensor.rows}, {"columns", tensor.columns}});
  }
  Json json;
  json["ranks"] = configuration.nranks;
  json["hosts"] = configuration.hosts;
  json["device"] = configuration.device;
  json["steps"] = options.steps;
  json["data"] = {{"path", corpus.path},
                  {"bytes", corpus.symbols.size()},
                  {"distinct", corpus.vocabulary},
                  {"hash", fmt::format("{:016x}", corpus.hash)}};
  json["network"] = {{"context", setup.shape.context},         {"embedding", setup.shape.embedding},
                     {"hidden", setup.shape.hidden},           {"layers", setup.shape.layers},
                     {"parameters", configuration.parameters}, {"tensors", std::move(tensors)}};
  json["batch"] = {{"sequences", totalOf(setup.counts)},
                   {"sequence", setup.window.sequence},
                   {"sequences_per_rank", setup.counts}};
  json["optimizer"] = {{"name", optimizerName(setup.optimizer.kind)},
                       {"learning_rate", setup.optimizer.learning_rate}};
  if (setup.optimizer.kind == OptimizerKind::kSgd) json["optimizer"]["momentum"] = setup.optimizer.momentum;
  json["dtype"] = precisionName(options.precision);
  json["averaging"] = averagingName(setup.averaging);
  json["seed"] = setup.seed;
  json["inject_fault"] =
      setup.fault ? Json{{"rank", setup.fault->rank}, {"step", setup.fault->step}} : Json();
  return json;
}

Json stepOf(const StepRecord& record) {
  Json json;
  json["step"] = record.step;
  json["loss"] = record.step == 0 ? Json() : Json(record.loss);
  json["losses"] = record.step == 0 ? Json() : Json(record.check.losses);
  json["hashes"] = hexAll(record.check.state_hashes);
  json["replicas_equal"] = !record.check.difference.has_value();
  json["distinct_gradients"] = record.step == 0 ? Json() : Json(record.check.distinct_gradients);
  json["payload_bytes"] = record.payload_bytes;
  json["network_bytes"] = record.network_bytes;
  json["seconds"] = {{"compute", record.times.compute},
                     {"all_reduce", record.times.all_reduce},
                     {"update", record.times.update},
                     {"check", record.times.check}};
  return json;
}

/// Null where the network was not used.
Json betweenHosts(const RunRecord& record) {
  const RunTotals& totals = record.totals;
  if (record.configuration.hosts == 1 && totals.most_network_bytes == 0) return {};
  const std::uint64_t hierarchical = hierarchicalNetworkBytes(record.configuration);
  Json json;
  json["hosts"] = record.configuration.hosts;
  json["least_step_bytes"] = totals.least_network_bytes;
  json["most_step_bytes"] = totals.most_network_bytes;
  json["hierarchical_step_bytes"] = hierarchical;
  json["equals_hierarchical"] = totals.steps > 0 && totals.least_network_bytes == hierarchical &&
                                totals.most_network_bytes == hierarchical;
  return json;
}

Json payloadOf(const RunRecord& record) {
  const RunTotals& totals = record.totals;
  const std::uint64_t ring = ringPayloadBytes(record.configuration);
  Json json;
  json["gradient_bytes"] = record.configuration.gradient_bytes;
  json["least_step_bytes"] = totals.least_payload_bytes;
  json["most_step_bytes"] = totals.most_payload_bytes;
  json["ring_step_bytes"] = ring;
  json["equals_ring"] =
      totals.steps > 0 && totals.least_payload_bytes == ring && totals.most_payload_bytes == ring;
  json["between_hosts"] = betweenHosts(record);
  return json;
}

Json timingOf(const RunTotals& totals, std::size_t sequences) {
  const double all = totals.times.all();
  const auto samples = static_cast<double>(totals.steps * sequences);
  return {{"steps", totals.steps},
          {"compute_seconds", totals.times.compute},
          {"all_reduce_seconds", totals.times.all_reduce},
          {"update_seconds", totals.times.update},
          {"check_seconds", totals.times.check},
          {"samples_per_second", all > 0 ? Json(samples / all) : Json()}};
}

Json verifyOf(const std::optional<VerifyResult>& result) {
  if (!result) return {};
  Json tensors = Json::array();
  for (const TensorDifference& tensor : result->tensors) {
    tensors.push_back({{"name", tensor.name}, {"relative_difference", tensor.relative}});
  }
  Json json;
  json["passed"] = result->passed();
  json["equals_whole_batch"] = result->equal();
  json["largest_relative_difference"] = result->largest;
  json["limit"] = result->limit;
  json["tensors"] = std::move(tensors);
  json["loss"] = {{"fell", result->trend.fell()},
                  {"window", result->trend.window},
                  {"first", result->trend.first},
                  {"last", result->trend.last}};
  return json;
}

Json experimentsOf(const std::optional<Experiments>& experiments) {
  if (!experiments) return {};
  Json json;
  json["traffic"] = Json::array();
  for (const TrafficPoint& point : experiments->traffic) {
    json["traffic"].push_back({{"series", point.series},
                               {"sequences", point.batch},
                               {"sequence", point.sequence},
                               {"gradient_bytes", point.gradient_bytes},
                               {"payload_bytes", point.payload_bytes}});
  }
  json["divergence"] = Json::array();
  for (const DivergencePoint& point : experiments->divergence) {
    json["divergence"].push_back({{"step", point.step},
                                  {"spread_without_averaging", point.spread_without_averaging},
                                  {"spread_with_averaging", point.spread_with_averaging},
                                  {"hashes_without_averaging", hexAll(point.hashes_without_averaging)}});
  }
  return json;
}

}  // namespace

Json startDocument(const char* mode) {
  Json document;
  document["schema"] = "tutti-train/1";
  document["mode"] = mode;
  document["version"] = TUTTI_VERSION;
  return document;
}

Json trainingDocument(const Options& options, const Corpus& corpus, const RunRecord& record) {
  Json document = startDocument("train");
  document["failure"] = record.failure.empty() ? Json() : Json(record.failure);
  document["configuration"] = configurationOf(options, corpus, record.configuration);
  document["steps"] = Json::array();
  for (const StepRecord& step : record.steps) document["steps"].push_back(stepOf(step));
  const auto& difference = record.totals.first_difference;
  document["replicas"] = {{"identical", !difference.has_value()},
                          {"first_difference_step", difference ? Json(*difference) : Json()}};
  document["payload"] = payloadOf(record);
  document["timing"] = timingOf(record.totals, totalOf(record.configuration.setup.counts));
  document["verify"] = verifyOf(record.verify);
  document["experiments"] = experimentsOf(record.experiments);
  return document;
}

std::string textOf(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::train
