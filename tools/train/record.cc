#include "tools/train/record.h"

#include <algorithm>
#include <utility>

namespace tutti::train {

void addStep(RunRecord& record, StepRecord step, bool keep) {
  RunTotals& totals = record.totals;
  const bool first = totals.steps++ == 0;
  if (step.check.distinct_gradients > 1) ++totals.steps_with_distinct_gradients;
  if (step.check.difference && !totals.first_difference) totals.first_difference = step.step;
  totals.least_payload_bytes =
      first ? step.payload_bytes : std::min(totals.least_payload_bytes, step.payload_bytes);
  totals.most_payload_bytes = std::max(totals.most_payload_bytes, step.payload_bytes);
  totals.least_network_bytes =
      first ? step.network_bytes : std::min(totals.least_network_bytes, step.network_bytes);
  totals.most_network_bytes = std::max(totals.most_network_bytes, step.network_bytes);
  totals.times.compute += step.times.compute;
  totals.times.all_reduce += step.times.all_reduce;
  totals.times.update += step.times.update;
  totals.times.check += step.times.check;
  record.losses.push_back(step.loss);
  if (keep) record.steps.push_back(std::move(step));
}

std::uint64_t ringPayloadBytes(const RunConfiguration& configuration) {
  return std::uint64_t{2} * (configuration.nranks - 1) * configuration.gradient_bytes;
}

std::uint64_t hierarchicalNetworkBytes(const RunConfiguration& configuration) {
  return std::uint64_t{2} * (configuration.hosts - 1) * configuration.gradient_bytes;
}

}  // namespace tutti::train
