// --scaling: the same training on 1 to N ranks, and how much faster it gets. Weak scaling: each rank has the
// same number of sequences per step, whatever the number of ranks.
#pragma once

#include <cstddef>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/train/options.h"

namespace tutti::train {

/// Of rank 0, which has as many steps in as much time as all others. A step includes the check of replicas:
/// ranks that share cores wait for each other there too.
struct ScalingRow {
  std::size_t ranks = 0;
  std::size_t steps = 0;  ///< that were looked at: all but the first few
  double mean_step_seconds = 0;
  double spread = 0;              ///< (90th - 10th percentile of the step) / mean
  double all_reduce_share = 0;    ///< of the time of all steps
  double samples_per_second = 0;  ///< sequences of all ranks / mean
};

struct ScalingResult {
  std::size_t cores = 0;  ///< that this process may use
  std::vector<ScalingRow> rows;

  double speedUp(const ScalingRow& row) const {
    return row.samples_per_second / rows.front().samples_per_second;
  }
  double efficiency(const ScalingRow& row) const { return speedUp(row) / static_cast<double>(row.ranks); }
};

/// A row from the document that a run of `ranks` ranks wrote with --json.
ScalingRow scalingRow(const nlohmann::ordered_json& document);

/// Starts the runs one after the other and prints a table as they end. The most ranks: options.ranks, else
/// those of the launcher, else the cores (at least 2). Throws UsageError, or std::runtime_error when a run
/// fails.
ScalingResult measureScaling(const Options& options, std::FILE* out);

nlohmann::ordered_json scalingDocument(const Options& options, const ScalingResult& result);

}  // namespace tutti::train
