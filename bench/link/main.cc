// link_perf: what one link gives, as ib_write_bw and ib_write_lat measure it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/launcher.h"
#include "bench/link/link.h"
#include "bench/link/link_options.h"
#include "bench/link/link_report.h"
#include "bench/rank_info.h"
#include "bench/say.h"
#include "bench/watchdog.h"
#include "tutti/tutti.h"

namespace tutti::perf {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kRanks = 2;
constexpr int kBuffers = 2;

/// What launchers call the rank, in the order of tutti/launch.h.
constexpr std::array kRankVariables{"TUTTI_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

/// Empty without a launcher. Asked before the library is, because it reads its settings once.
std::optional<std::size_t> launchedRank() {
  for (const char* name : kRankVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return std::strtoul(value, nullptr, 10);
  }
  return std::nullopt;
}

/// Of the ranks that one tutti-run shows, the first one: what is wrong with the arguments is so on all of
/// them.
bool speaks() {
  const char* const rank = std::getenv("TUTTI_RANK");
  return rank == nullptr || std::string_view(rank).empty() || std::string_view(rank) == "0";
}

/// Both ranks have to send and await the same. Throws std::invalid_argument that says where they differ.
void requireAgreement(const LinkOptions& options, device::Exchange& exchange) {
  const std::array own = sharedValues(options);
  const std::vector<std::uint64_t> all = exchange.gather(std::span<const std::uint64_t>(own));
  std::string differences;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::uint64_t second = all[own.size() + i];
    if (all[i] == second) continue;
    differences += fmt::format("{}{}: rank 0 has {}, rank 1 has {}", differences.empty() ? "" : "; ",
                               kSharedFlags[i], all[i], second);
  }
  if (!differences.empty())
    throw std::invalid_argument(fmt::format("the ranks were started differently: {}", differences));
}

/// One rank's part of a run, in a thread of its own. Returns the exit status.
class LinkRank {
 public:
  LinkRank(LinkOptions options, const device::Devices& devices, const device::SeatPlan& plan)
      : options_(std::move(options)), devices_(devices), plan_(plan) {
    if (plan.first_rank == 0) report_ = std::make_unique<LinkReport>(options_);
  }

  int run() {
    try {
      return measure();
    } catch (const std::invalid_argument& error) {
      return fail(error.what(), kBadUsage);
    } catch (const std::exception& error) {
      return timed_out_ ? fail(fmt::format("no end within {} s (-T)", options_.timeout_s), kFailed)
                        : fail(error.what(), kFailed);
    }
  }

 private:
  int fail(const std::string& message, int status) {
    if (status != kBadUsage || report_ || speaks())
      sayError(fmt::format("link_perf: rank {}: {}", plan_.first_rank, message));
    if (report_) report_->fail(message);
    return status;
  }

  int measure() {
    const std::vector<device::Seat> seats = device::takeSeats(devices_, plan_);
    const device::Seat& seat = seats.front();
    tuttiTransport_t transport;
    check(tuttiCommTransport(seat.comm(), 1 - seat.rank(), &transport));
    if (const std::string why = disagreement(options_.medium, transport.name); !why.empty())
      throw std::invalid_argument(why);
    std::vector<RankInfo> ranks;
    {
      device::Exchange exchange(seats);
      requireAgreement(options_, exchange);
      ranks = gatherRankInfo(seats, 0, exchange);
    }
    if (const std::size_t limit = largestMessage(ranks, kBuffers); options_.sizes.max > limit) {
      throw std::invalid_argument(fmt::format(
          "-e: {} bytes are more than free memory allows, {} bytes per buffer", options_.sizes.max, limit));
    }
    if (report_) report_->begin(ranks, transport);
    Link link(seat, {.bytes = options_.sizes.max, .registered = options_.registered});
    Watchdog watchdog({seat.comm()}, seat.rank(), std::chrono::seconds(options_.timeout_s));
    try {
      if (options_.bandwidth) bandwidths(link, watchdog);
      if (options_.latency) latencies(link, watchdog);
    } catch (const Error&) {
      timed_out_ = watchdog.fired();
      throw;
    }
    if (report_) report_->end(wrong_);
    return wrong_ == 0 ? 0 : kFailed;
  }

  void bandwidths(Link& link, Watchdog& watchdog) {
    if (report_) report_->beginBandwidth();
    for (const std::size_t bytes : sizesOf(options_.sizes)) {
      watchdog.arm(fmt::format("bandwidth of {} bytes", bytes));
      LinkRow row{.bytes = bytes};
      row.bandwidth = link.bandwidth(bytes, warmup(), options_.iterationsFor(bytes));
      finish(link, row);
      watchdog.disarm();
    }
  }

  void latencies(Link& link, Watchdog& watchdog) {
    if (report_) report_->beginLatency();
    for (const std::size_t bytes : sizesOf(options_.sizes)) {
      watchdog.arm(fmt::format("latency of {} bytes", bytes));
      LinkRow row{.bytes = bytes};
      row.latency = link.latency(bytes, warmup(), options_.iterationsFor(bytes));
      finish(link, row);
      watchdog.disarm();
    }
  }

  void finish(Link& link, LinkRow& row) {
    row.wrong = link.countWrong(row.bytes, options_.corrupt);
    wrong_ += row.wrong;
    if (report_) report_->row(row);
  }

  std::size_t warmup() const { return static_cast<std::size_t>(options_.warmup); }

  const LinkOptions options_;
  const device::Devices& devices_;
  const device::SeatPlan plan_;
  std::unique_ptr<LinkReport> report_;
  std::uint64_t wrong_ = 0;
  bool timed_out_ = false;
};

/// Both ranks as threads, or this process's one.
int runRanks(const LinkOptions& options) {
  const device::Devices& devices = device::chooseDevices(options.device);
  tuttiLaunch_t launch;
  check(tuttiLaunchFromEnvironment(&launch));
  const int here = options.medium == Medium::inproc ? kRanks : 1;
  if (launch.nranks * here != kRanks)
    throw std::invalid_argument(fmt::format("one link has two ranks, not {}", launch.nranks * here));
  std::vector<std::unique_ptr<LinkRank>> ranks;
  ranks.reserve(static_cast<std::size_t>(here));
  for (int i = 0; i < here; ++i) {
    ranks.push_back(
        std::make_unique<LinkRank>(options, devices,
                                   device::SeatPlan{.id = launch.id,
                                                    .nranks = kRanks,
                                                    .first_rank = launch.rank * here + i,
                                                    .first_device = device::localRank() * here + i}));
  }
  std::vector<int> statuses(ranks.size(), kFailed);
  {
    std::vector<std::jthread> threads;
    threads.reserve(ranks.size());
    for (std::size_t i = 1; i < ranks.size(); ++i)
      threads.emplace_back([&status = statuses[i], &rank = *ranks[i]] { status = rank.run(); });
    statuses[0] = ranks[0]->run();
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error("cannot write to standard output");
  return *std::ranges::max_element(statuses);
}

int run(int argc, char** argv) {
  const std::optional<std::size_t> rank = launchedRank();
  try {
    const ParsedLinkOptions parsed = parseLinkOptions(argc, argv, speaks());
    if (!parsed.options) return parsed.exit_status;
    const LinkOptions& options = *parsed.options;
    askFor(options.medium);
    const bool is_in_process = options.medium == Medium::inproc;
    if (!rank && !is_in_process) {
      std::vector<std::string> ranks{"-n", std::to_string(kRanks)};
      if (isNetwork(options.medium)) ranks.insert(ranks.end(), {"--hosts", std::to_string(kRanks)});
      becomeLauncher(ranks, options.arguments);
    }
    if (rank && is_in_process)
      throw std::invalid_argument(
          "--transport inproc: both ranks are threads of one process; start it alone");
    if (!options.rdma_devices.empty()) {
      const std::size_t place = std::min(rank.value_or(0), options.rdma_devices.size() - 1);
      ::setenv("NCCL_IB_HCA", ("=" + options.rdma_devices[place]).c_str(), 1);
    }
    return runRanks(options);
  } catch (const std::invalid_argument& error) {
    if (speaks()) sayError(fmt::format("link_perf: {}", error.what()));
    return kBadUsage;
  } catch (const std::system_error& error) {
    sayError(fmt::format("link_perf: {}", error.what()));
    return kBadUsage;
  } catch (const std::exception& error) {
    sayError(fmt::format("link_perf: {}", error.what()));
    return kFailed;
  }
}

}  // namespace
}  // namespace tutti::perf

int main(int argc, char** argv) { return tutti::perf::run(argc, argv); }
