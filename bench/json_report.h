// The JSON report (-J): the structure of nccl-tests' version 3.
#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/results.h"

namespace tutti::perf {

/// One file, written once, at finish(). Yes/no values are the words "true" and "false", as in nccl-tests; of
/// the environment only TUTTI_ and NCCL_ variables are recorded.
class JsonReport {
 public:
  /// Creates options.json_path, or, where it exists, the first free one of PATH.0, PATH.1, ... Throws
  /// std::system_error, naming the path.
  explicit JsonReport(const Options& options);

  const std::string& path() const { return path_; }

  void setRanks(const Options& options, const std::vector<RankInfo>& ranks);
  void add(const Options& options, const Row& row);

  /// Writes and closes the file. `errors` says what ended the run early. Throws std::system_error.
  void finish(const Totals& totals, std::optional<double> min_gbps, const std::vector<std::string>& errors);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  nlohmann::ordered_json document_;
};

}  // namespace tutti::perf
