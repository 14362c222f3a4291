#include "bench/json_report.h"

#include "nccl.h"

namespace tutti::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 3;

const char* word(bool value) { return value ? "true" : "false"; }

Json halfOf(const Measurement& half, bool cpu_time) {
  Json json;
  json[cpu_time ? "cpu_time" : "time"] = half.time_us;
  json["alg_bw"] = half.alg_gbps;
  json["bus_bw"] = half.bus_gbps;
  json["nwrong"] = half.wrong ? Json(*half.wrong) : Json();
  return json;
}

Json iterationsOf(const IterationStats& stats) {
  return {{"min_us", stats.min_us},     {"max_us", stats.max_us},     {"avg_us", stats.mean_us},
          {"p50_us", stats.p50_us},     {"p95_us", stats.p95_us},     {"p99_us", stats.p99_us},
          {"stdev_us", stats.stdev_us}, {"cv_pct", stats.cv_percent}, {"times_us", stats.times_us}};
}

Json configOf(const Options& options) {
  Json config{{"nthreads", options.threads},
              {"ngpus", options.gpus},
              {"minimum_bytes", options.sizes.min},
              {"maximum_bytes", options.sizes.max}};
  if (options.sizes.factor > 1) {
    config["step_factor"] = options.sizes.factor;
  } else {
    config["step_bytes"] = options.sizes.step;
  }
  config["warmup_iters"] = options.warmup;
  config["iterations"] = options.iterations;
  config["aggregated_iterations"] = options.aggregate;
  config["validation"] = options.checks;
  config["graph"] = options.graph;
  config["null_stream"] = word(options.null_stream);
  config["local_register"] = options.registered ? 1 : 0;
  config["unalign"] = options.unaligned;
  config["blocking_collectives"] = word(options.blocking != Blocking::kNone);
  config["per_iter_timing"] = word(options.per_iteration);
  config["parallel_init"] = word(true);
  return config;
}

}  // namespace

JsonReport::JsonReport(const Options& options) : file_(options.json_path, kFormatVersion, options.arguments) {
  int library = 0;
  ncclGetVersion(&library);
  file_.document()["nccl_version"] = library;
  file_.document()["config"] = configOf(options);
  file_.document()["results"] = Json::array();
}

void JsonReport::setRanks(const Options& options, const std::vector<RankInfo>& ranks) {
  Json& config = file_.document()["config"] = configOf(options);
  config["device"] = ranks.front().place.empty() ? "host" : "cuda";
  Json& devices = config["devices"] = Json::array();
  int rank = 0;
  for (const RankInfo& info : ranks) {
    devices.push_back({{"rank", rank++},
                       {"group", info.group},
                       {"pid", info.pid},
                       {"hostname", info.host},
                       {"device", info.device},
                       {"device_hex", info.place.empty() ? "host memory" : info.place},
                       {"device_info", info.device_name}});
  }
}

void JsonReport::add(const Options& options, const Row& row) {
  Json result{
      {"size", row.bytes}, {"count", row.count}, {"type", row.type}, {"redop", row.op}, {"root", row.root}};
  result["out_of_place"] = halfOf(row.out_of_place, options.cpu_time);
  if (row.out_of_place.iterations)
    result["out_of_place_per_iter"] = iterationsOf(*row.out_of_place.iterations);
  result["in_place"] = halfOf(row.in_place, options.cpu_time);
  if (row.in_place.iterations) result["in_place_per_iter"] = iterationsOf(*row.in_place.iterations);
  result["actual_iterations"] = options.iterations;
  file_.document()["results"].push_back(std::move(result));
}

void JsonReport::finish(const Totals& totals, std::optional<double> min_gbps,
                        const std::vector<std::string>& errors) {
  file_.document()["out_of_bounds"] = {{"count", totals.wrong}, {"okay", word(totals.wrong == 0)}};
  file_.document()["average_bus_bandwidth"] = {
      {"bandwidth", totals.averageBusGbps()},
      {"okay", min_gbps ? word(totals.reaches(*min_gbps)) : "unchecked"}};
  file_.finish(errors);
}

}  // namespace tutti::perf
