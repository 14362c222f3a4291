#include "bench/table.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "nccl.h"

namespace tutti::perf {
namespace {

constexpr const char* kLeft = "{:>10}  {:>12}  {:>8}  {:>6}  {:>6}";
constexpr const char* kTimeFormat = "%Y-%m-%d %H:%M:%S";

std::string halfHeader(const Options& options, bool units) {
  if (units) {
    return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "") +
           (options.per_iteration ? fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)")
                                  : "");
  }
  const char* time = options.cpu_time ? "cputime" : "time";
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time, "algbw", "busbw", "#wrong") +
         (options.per_iteration
              ? fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%")
              : "");
}

std::string halfRow(const Measurement& half) {
  std::string text =
      fmt::format("  {}  {}  {}  {:>6}", fitted(half.time_us, 7), fitted(half.alg_gbps, 6),
                  fitted(half.bus_gbps, 6), half.wrong ? fmt::format("{:g}", double(*half.wrong)) : "N/A");
  if (half.iterations) {
    text += fmt::format("  {}  {}  {}  {}", fitted(half.iterations->min_us, 7),
                        fitted(half.iterations->max_us, 7), fitted(half.iterations->p99_us, 7),
                        fitted(half.iterations->cv_percent, 7));
  }
  return text;
}

std::string parameterLine(const Options& options) {
  const bool factor = options.sizes.factor > 1;
  return fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {} graph: {} unalign: {}\n",
      options.threads, options.gpus, options.sizes.min, options.sizes.max,
      factor ? options.sizes.factor : options.sizes.step, factor ? "factor" : "bytes", options.warmup,
      options.iterations, options.aggregate, options.checks, options.graph, options.unaligned);
}

std::string blockingLine(Blocking blocking) {
  switch (blocking) {
    case Blocking::kBarrierPerOperation:
      return "# Blocking Enabled: wait for completion, and barrier, not timed, after each collective\n";
    case Blocking::kBarrierPerIteration:
      return "# Blocking Enabled: wait for completion, and barrier, not timed, after each iteration\n";
    case Blocking::kWait:
      return "# Blocking Enabled: wait for completion after each collective\n";
    case Blocking::kNone:
      break;
  }
  return {};
}

std::string memoryLine() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const double megabytes = static_cast<double>(usage.ru_maxrss) / 1024;  // ru_maxrss is in kilobytes
  return fmt::format("# {:<20} : {:.1f} MB at most in rank 0's process\n", "Host memory usage", megabytes);
}

}  // namespace

std::string fitted(double value, int width) {
  for (const int decimals : {2, 1, 0}) {
    std::string text = fmt::format("{:{}.{}f}", value, width, decimals);
    if (text.size() <= static_cast<std::size_t>(width)) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string bannerText(const Options& options, const Collective& collective,
                       const std::vector<RankInfo>& ranks) {
  int library = 0;
  ncclGetVersion(&library);
  std::string text = fmt::format("# tutti-perf version {} nccl-headers={} nccl-library={}\n",
                                 TUTTI_PERF_VERSION, NCCL_VERSION_CODE, library);
  text += fmt::format("# Collective test starting: {}\n", collective.program);
  text += parameterLine(options);
  text += blockingLine(options.blocking);
  if (options.registered) text += "# Local Registration: buffers are registered (ncclCommRegister)\n";
  if (options.per_iteration) text += "# Per-Iteration Report: each iteration is the slowest rank's\n";
  text += "#\n# Using devices\n";
  int rank = 0;
  for (const RankInfo& info : ranks) {
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{}] {}\n", rank++,
                        info.group, info.pid, info.host, info.device,
                        info.place.empty() ? "host memory" : info.place, info.device_name);
  }
  if (ranks.size() == 1) {
    text += fmt::format(
        "#\n# ONE RANK ONLY: nothing is exchanged, and the bus bandwidth of most collectives is 0.\n"
        "# Start several with: {0} --launch 4 ..., or: tutti-run -n 4 {0} ..., or -t 4 for threads.\n",
        collective.program);
  }
  return text;
}

std::string headerText(const Options& options) {
  const std::string left = std::string("# ") + kLeft;
  // Titles are centred over their halves: 33 characters each, 36 more with per-iteration figures.
  const int half = options.per_iteration ? 69 : 33;
  std::string text = "#\n" + fmt::format(fmt::runtime(left), "", "", "", "", "");
  text += fmt::format("{0:^{2}}{1:^{2}}\n", "out-of-place", "in-place", half);
  const std::string stamp = options.timestamps ? fmt::format("  {:>19}", "timestamp") : "";
  const std::string stamp_unit = options.timestamps ? fmt::format("  {:>19}", kTimeFormat) : "";
  text += fmt::format(fmt::runtime(left), "size", "count", "type", "redop", "root");
  text += halfHeader(options, false) + halfHeader(options, false) + stamp + "\n";
  text += fmt::format(fmt::runtime(left), "(B)", "(elements)", "", "", "");
  text += halfHeader(options, true) + halfHeader(options, true) + stamp_unit + "\n";
  return text;
}

std::string rowText(const Options& options, const Row& row) {
  std::string text =
      fmt::format(fmt::runtime(std::string("  ") + kLeft), row.bytes, row.count, row.type, row.op, row.root);
  text += halfRow(row.out_of_place) + halfRow(row.in_place);
  if (options.timestamps) text += "  " + timeOfDay();
  return text + "\n";
}

std::string footerText(const Options& options, const Collective& collective, const Totals& totals,
                       std::optional<double> min_gbps) {
  std::string text = fmt::format("# {:<20} : {} {}\n", "Out of bounds values", totals.wrong,
                                 totals.wrong == 0 ? "OK" : "FAILED");
  text += fmt::format("# {:<20} : {:g}", "Avg bus bandwidth", totals.averageBusGbps());
  if (min_gbps) text += totals.reaches(*min_gbps) ? " OK" : " FAILED";
  text += "\n#\n";
  if (options.memory_report) text += memoryLine() + "#\n";
  return text + fmt::format("# Collective test concluded: {}\n#\n", collective.program);
}

std::string timeOfDay() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), kTimeFormat, &local);
  return text.data();
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) const {
  if (!terminal_) return;
  erase();
  std::fputs(text.c_str(), stderr);
}

void Progress::erase() const {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

}  // namespace tutti::perf
