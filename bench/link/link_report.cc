#include "bench/link/link_report.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace tutti::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a run that is cut short keeps what it has
}

}  // namespace

LinkReport::LinkReport(const LinkOptions& options) : options_(options) {
  if (!options_.json_path.empty()) json_.emplace(options_.json_path, kFormatVersion, options.arguments);
}

void LinkReport::begin(const std::vector<RankInfo>& ranks, const tuttiTransport_t& transport) {
  std::string text = "# link_perf: messages from rank 0 to rank 1\n";
  const std::string_view details = transport.details;
  text += fmt::format("# Transport  : {}{}{}{}\n", transport.name, details.empty() ? "" : ", ", details,
                      options_.medium == Medium::automatic ? " (chosen by the library)" : "");
  Json& people = document_["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankInfo& info = ranks[rank];
    const std::string memory = info.place.empty() ? "host memory" : fmt::format("GPU {}", info.place);
    text += fmt::format("# Rank {}     : pid {} on {}, {}, {}\n", rank, info.pid, info.host, memory,
                        info.device_name);
    people.push_back({{"rank", rank},
                      {"pid", info.pid},
                      {"hostname", info.host},
                      {"memory", memory},
                      {"device", info.device_name}});
  }
  text +=
      fmt::format("# Buffers    : {}\n", options_.registered ? "registered (-R 1)" : "not registered (-R 0)");
  document_["transport"] = {{"name", transport.name}, {"details", transport.details}};
  document_["registered"] = options_.registered;
  document_["results"] = Json::array();
  print(text);
}

void LinkReport::beginBandwidth() const {
  const char* const unit = options_.gbits ? "Gb/sec" : "MiB/sec";
  print(fmt::format("#\n# Bandwidth, one way\n# {:>9} {:>11} {:>16} {:>18} {:>13} {:>7}\n", "bytes",
                    "iterations", fmt::format("BW peak[{}]", unit), fmt::format("BW average[{}]", unit),
                    "MsgRate[Mpps]", "#wrong"));
}

void LinkReport::beginLatency() const {
  print(fmt::format(
      "#\n# Latency, half of a round trip, in microseconds\n# {:>9} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} "
      "{:>9} {:>7}\n",
      "bytes", "iterations", "t_min", "t_max", "t_typical", "t_avg", "t_stdev", "99%", "#wrong"));
}

void LinkReport::row(const LinkRow& row) {
  Json result{{"bytes", row.bytes}};
  if (row.bandwidth) {
    const Bandwidth& b = *row.bandwidth;
    const double unit = options_.gbits ? 1e9 / 8 : 1 << 20;
    print(fmt::format("  {:>9} {:>11} {:>16.2f} {:>18.2f} {:>13.6f} {:>7}\n", row.bytes, b.iterations,
                      b.peak_bytes_per_s / unit, b.average_bytes_per_s / unit, b.messages_per_s / 1e6,
                      row.wrong));
    result.update({{"test", "bw"},
                   {"iterations", b.iterations},
                   {"bw_peak_bytes_per_s", b.peak_bytes_per_s},
                   {"bw_average_bytes_per_s", b.average_bytes_per_s},
                   {"messages_per_s", b.messages_per_s}});
  }
  if (row.latency) {
    const IterationStats& l = *row.latency;
    print(fmt::format("  {:>9} {:>11} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>7}\n",
                      row.bytes, l.times_us.size(), l.min_us, l.max_us, l.p50_us, l.mean_us, l.stdev_us,
                      l.p99_us, row.wrong));
    result.update({{"test", "lat"},
                   {"iterations", l.times_us.size()},
                   {"t_min_us", l.min_us},
                   {"t_max_us", l.max_us},
                   {"t_typical_us", l.p50_us},
                   {"t_avg_us", l.mean_us},
                   {"t_stdev_us", l.stdev_us},
                   {"t_p99_us", l.p99_us},
                   {"times_us", l.times_us}});
  }
  result["wrong"] = row.wrong;
  document_["results"].push_back(std::move(result));
}

void LinkReport::end(std::uint64_t wrong) {
  print(fmt::format("#\n# Wrong bytes : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED"));
  writeJson(wrong, {});
}

void LinkReport::fail(const std::string& error) { writeJson(0, {error}); }

void LinkReport::writeJson(std::uint64_t wrong, const std::vector<std::string>& errors) {
  if (!json_) return;
  document_["wrong"] = wrong;
  json_->document().update(document_);
  json_->finish(errors);
  json_.reset();
}

}  // namespace tutti::perf
