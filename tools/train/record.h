// What a training run found out: filled by train.cc, told by console, json_report and html_report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/experiments.h"
#include "tools/train/training.h"
#include "tools/train/verify.h"

namespace tutti::train {

/// Known before the first step.
struct RunConfiguration {
  std::size_t nranks = 0;
  std::size_t hosts = 1;  ///< that the ranks are on
  std::size_t parameters = 0;
  std::size_t gradient_bytes = 0;
  std::vector<Tensor> tensors;
  TrainingSetup setup;
  std::string device;  ///< that rank 0 works on, in words
};

struct VerifyResult {
  double limit = 0;
  double largest = 0;
  std::vector<TensorDifference> tensors;
  LossTrend trend;

  bool equal() const { return largest <= limit; }  // false for NaN
  bool passed() const { return equal() && trend.fell(); }
};

/// Over the steps that were made.
struct RunTotals {
  std::size_t steps = 0;
  std::size_t steps_with_distinct_gradients = 0;
  std::optional<std::size_t> first_difference;  ///< the first step after which replicas differed
  std::uint64_t least_payload_bytes = 0;        ///< of a step, over all ranks
  std::uint64_t most_payload_bytes = 0;
  std::uint64_t least_network_bytes = 0;  ///< of a step, between hosts
  std::uint64_t most_network_bytes = 0;
  StepTimes times;  ///< sums
};

struct RunRecord {
  RunConfiguration configuration;
  RunTotals totals;
  std::vector<double> losses;
  std::vector<StepRecord> steps;  ///< from step 0; empty unless a report wants them
  std::optional<VerifyResult> verify;
  std::optional<Experiments> experiments;
  std::string failure;  ///< empty when all was well
};

/// Adds a step; keeps all of it when `keep`.
void addStep(RunRecord& record, StepRecord step, bool keep);

/// What the averaging of one step moves over all ranks in a ring: 2 (n - 1) times the gradient.
std::uint64_t ringPayloadBytes(const RunConfiguration& configuration);

/// What it moves between hosts where every host passes its sum round the hosts: 2 (h - 1) times the gradient.
/// No all-reduce can do with less that does not know the values.
std::uint64_t hierarchicalNetworkBytes(const RunConfiguration& configuration);

}  // namespace tutti::train
