// The text report, in the form of nccl-tests: banner, table, closing lines. Printed by rank 0 only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/options.h"
#include "bench/results.h"

namespace tutti::perf {

/// `value` in `width` characters: two decimals where they fit, then fewer, then an exponent.
std::string fitted(double value, int width);

std::string bannerText(const Options& options, const Collective& collective,
                       const std::vector<RankInfo>& ranks);
std::string headerText(const Options& options);
std::string rowText(const Options& options, const Row& row);

/// The closing lines. `min_gbps` is NCCL_TESTS_MIN_BW, where it is set.
std::string footerText(const Options& options, const Collective& collective, const Totals& totals,
                       std::optional<double> min_gbps);

/// Local time as in the timestamp column, YYYY-MM-DD hh:mm:ss.
std::string timeOfDay();

/// A line that comes and goes on a terminal's standard error; silent when that is no terminal.
class Progress {
 public:
  Progress();
  void show(const std::string& text) const;
  void erase() const;

 private:
  bool terminal_;
};

}  // namespace tutti::perf
