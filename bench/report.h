// Everything that rank 0 says: table, JSON file, progress.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/json_report.h"
#include "bench/options.h"
#include "bench/results.h"
#include "bench/table.h"

namespace tutti::perf {

class Report {
 public:
  /// Creates the JSON file, where one is asked for; throws std::system_error when that fails. `min_gbps` is
  /// NCCL_TESTS_MIN_BW. The options and the collective outlive the object.
  Report(const Options& options, const Collective& collective, std::optional<double> min_gbps);

  /// Banner and column titles. `note` is a comment line, or empty.
  void begin(const Options& options, const std::vector<RankInfo>& ranks, const std::string& note);
  void progress(const std::string& what) const { progress_.show(what); }
  void row(const Row& row);
  /// Comment lines behind a row.
  void note(const std::string& lines) const { print(lines); }
  void end(const Totals& totals);

  /// Ends the reports of a run that failed.
  void fail(const std::string& error);

 private:
  void print(const std::string& text) const;

  const Options& options_;
  const Collective& collective_;
  std::optional<double> min_gbps_;
  Totals so_far_;
  std::optional<JsonReport> json_;
  Progress progress_;
};

}  // namespace tutti::perf
