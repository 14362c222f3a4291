#include "tools/train/console.h"

#include <string>

#include "tools/train/division.h"

namespace tutti::train {
namespace {

/// "16 per rank", or, where ranks differ, "4, 400, 4, 400 by rank".
std::string countsText(const std::vector<std::size_t>& counts) {
  if (counts == evenCounts(totalOf(counts), counts.size())) return fmt::format("{} per rank", counts.front());
  return fmt::format("{} by rank", fmt::join(counts, ", "));
}

std::string averagingText(const RunConfiguration& configuration) {
  switch (configuration.setup.averaging) {
    case Averaging::kNone:
      return "nothing (--no-average)";
    case Averaging::kMean:
      return fmt::format("{} bytes per step", configuration.gradient_bytes);
    case Averaging::kWeighted:
      return fmt::format("{} bytes per step, weighted by the ranks' sequences", configuration.gradient_bytes);
  }
  return {};
}

const char* plural(std::size_t count) { return count == 1 ? "" : "s"; }

}  // namespace

void Console::header(const Options& options, const Corpus& corpus,
                     const RunConfiguration& configuration) const {
  const TrainingSetup& setup = configuration.setup;
  const OptimizerSettings& optimizer = setup.optimizer;
  std::string network = fmt::format("{} characters x {}", setup.shape.context, setup.shape.embedding);
  for (std::size_t layer = 0; layer < setup.shape.layers; ++layer)
    network += fmt::format(" -> {} tanh", setup.shape.hidden);
  say("tutti-train {}: next-character prediction, {} rank{}{}", TUTTI_VERSION, configuration.nranks,
      plural(configuration.nranks),
      configuration.hosts > 1 ? fmt::format(" on {} hosts", configuration.hosts) : "");
  say("  device     {}", configuration.device);
  say("  data       {}: {} bytes, {} distinct", corpus.path, corpus.symbols.size(), corpus.vocabulary);
  say("  network    {} -> {} softmax: {} parameters in {} tensors", network, setup.shape.vocabulary,
      configuration.parameters, configuration.tensors.size());
  say("  batch      {} sequences of {} character{}, {}", totalOf(setup.counts), setup.window.sequence,
      plural(setup.window.sequence), countsText(setup.counts));
  say("  optimizer  {}, learning rate {}{}", optimizerName(optimizer.kind), optimizer.learning_rate,
      optimizer.kind == OptimizerKind::kSgd ? fmt::format(", momentum {}", optimizer.momentum) : "");
  say("  averaged   {}, {}", averagingText(configuration), precisionName(options.precision));
  say("  seed       {}", setup.seed);
}

void Console::start(const StepRecord& record) const {
  say("step {:>4}  {} replicas equal ({:016x})", 0, record.check.state_hashes.size(),
      record.check.state_hashes.front());
}

void Console::step(const StepRecord& record) const {
  const CheckResult& check = record.check;
  const std::string replicas = check.difference
                                   ? fmt::format("{} distinct replicas", check.distinct_states)
                                   : fmt::format("replicas equal ({:016x})", check.state_hashes.front());
  say("step {:>4}  loss {:.4f}  gradients differed before averaging: {} distinct of {}  {}", record.step,
      record.loss, check.distinct_gradients, check.state_hashes.size(), replicas);
}

void Console::diverged(const StepRecord& record) const {
  say("replicas diverged at step {}: {}", record.step,
      describe(*record.check.difference, record.check.state_hashes.size()));
}

void Console::summary(const RunRecord& record) const {
  const StepTimes& times = record.totals.times;
  const double all = times.all();
  say("time: {:.3g} ms per step, {:.1f} % of it in the all-reduce of gradients (rank 0)",
      1e3 * all / static_cast<double>(record.totals.steps), all > 0 ? 100.0 * times.all_reduce / all : 0.0);
  payload(record);
  network(record);
  say("gradients differed between ranks before averaging in {} of {} steps",
      record.totals.steps_with_distinct_gradients, record.totals.steps);
}

void Console::payload(const RunRecord& record) const {
  const RunConfiguration& configuration = record.configuration;
  const std::uint64_t least = record.totals.least_payload_bytes;
  const std::uint64_t most = record.totals.most_payload_bytes;
  const std::size_t gradient = configuration.gradient_bytes;
  if (least != most) {
    say("payload: {} to {} bytes per step over all ranks, for a gradient of {}", least, most, gradient);
  } else if (most == 0) {
    say("payload: 0 bytes per step: nothing passed between ranks");
  } else if (most == ringPayloadBytes(configuration)) {
    say("payload: {} bytes per step over all ranks, exactly 2(n-1) = {} times the gradient's {}", most,
        2 * (configuration.nranks - 1), gradient);
  } else {
    say("payload: {} bytes per step over all ranks, {:.4g} times the gradient's {} (a ring: {})", most,
        static_cast<double>(most) / static_cast<double>(gradient), gradient, 2 * (configuration.nranks - 1));
  }
}

void Console::network(const RunRecord& record) const {
  const RunConfiguration& configuration = record.configuration;
  const std::uint64_t least = record.totals.least_network_bytes;
  const std::uint64_t most = record.totals.most_network_bytes;
  const std::size_t hosts = configuration.hosts;
  if (most == 0) return;
  if (hosts == 1) {
    // Their processes cannot share memory, as in containers of their own.
    say("  of which {} bytes per step by the network, inside one host", most);
  } else if (least != most) {
    say("  of which {} to {} bytes per step between {} hosts", least, most, hosts);
  } else if (most == hierarchicalNetworkBytes(configuration)) {
    say("  of which {} bytes per step between {} hosts, exactly 2(h-1) = {} times the gradient's {}", most,
        hosts, 2 * (hosts - 1), configuration.gradient_bytes);
  } else {
    say("  of which {} bytes per step between {} hosts, {:.4g} times the gradient's {} (hierarchical: {})",
        most, hosts, static_cast<double>(most) / static_cast<double>(configuration.gradient_bytes),
        configuration.gradient_bytes, 2 * (hosts - 1));
  }
}

void Console::verify(const VerifyResult& result) const {
  say("verify: per tensor |distributed - whole batch| / |whole batch|");
  for (const TensorDifference& difference : result.tensors) {
    say("  {:<15} {:.2e}", difference.name, difference.relative);
  }
  say("verify: distributed run equals one process on the whole batch: {} (max relative difference {:.2e}, "
      "limit {:.0e})",
      result.equal() ? "yes" : "no", result.largest, result.limit);
  const LossTrend& trend = result.trend;
  say("verify: loss fell: {} (mean of the first {} steps {:.4f}, of the last {} {:.4f})",
      trend.fell() ? "yes" : "no", trend.window, trend.first, trend.window, trend.last);
}

void Console::verdict(const RunRecord& record) const {
  if (record.totals.first_difference) {
    say("divergence is what --no-average is for: exit status 0");
    say("replicas identical after every step: no (first difference after step {})",
        *record.totals.first_difference);
  } else {
    say("replicas identical after every step: yes ({}/{})", record.totals.steps, record.totals.steps);
  }
}

void Console::wrote(const std::string& what, const std::string& path) const { say("{}: {}", what, path); }

}  // namespace tutti::train
