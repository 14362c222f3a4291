// What link_perf says: perftest's columns, and a JSON file. Rank 0 only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/json_file.h"
#include "bench/link/link.h"
#include "bench/link/link_options.h"
#include "bench/results.h"
#include "tutti/transport.h"

namespace tutti::perf {

/// One size of one test.
struct LinkRow {
  std::size_t bytes = 0;
  std::optional<Bandwidth> bandwidth = {};
  std::optional<IterationStats> latency = {};
  std::uint64_t wrong = 0;
};

class LinkReport {
 public:
  /// Creates the JSON file, where one is asked for; throws std::system_error when that fails. The options
  /// outlive the object.
  explicit LinkReport(const LinkOptions& options);

  void begin(const std::vector<RankInfo>& ranks, const tuttiTransport_t& transport);
  void beginBandwidth() const;
  void beginLatency() const;
  void row(const LinkRow& row);
  void end(std::uint64_t wrong);
  /// Ends the reports of a run that failed.
  void fail(const std::string& error);

 private:
  void writeJson(std::uint64_t wrong, const std::vector<std::string>& errors);

  const LinkOptions& options_;
  std::optional<JsonFile> json_;
  nlohmann::ordered_json document_;
};

}  // namespace tutti::perf
