// The JSON report (-J): the structure of nccl-tests' version 3.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/json_file.h"
#include "bench/options.h"
#include "bench/results.h"

namespace tutti::perf {

/// Yes/no values are the words "true" and "false", as in nccl-tests.
class JsonReport {
 public:
  /// Creates the file at options.json_path. Throws std::system_error.
  explicit JsonReport(const Options& options);

  const std::string& path() const { return file_.path(); }

  void setRanks(const Options& options, const std::vector<RankInfo>& ranks);
  void add(const Options& options, const Row& row);

  /// Writes and closes the file. `errors` says what ended the run early. Throws std::system_error.
  void finish(const Totals& totals, std::optional<double> min_gbps, const std::vector<std::string>& errors);

 private:
  JsonFile file_;
};

}  // namespace tutti::perf
