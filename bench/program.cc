#include "bench/program.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/launcher.h"
#include "bench/rank_info.h"
#include "bench/runner.h"
#include "bench/say.h"
#include "bench/split.h"
#include "tools/device/choice.h"

namespace tutti::perf {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kBuffers = 2;

/// Bad arguments that only show once the ranks are known.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string environmentText(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool underLauncher() {
  return std::getenv("TUTTI_RANK") != nullptr || std::getenv("TUTTI_WORLD_SIZE") != nullptr;
}

std::optional<double> minimumBandwidth() {
  const std::string text = environmentText("NCCL_TESTS_MIN_BW");
  if (text.empty()) return std::nullopt;
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || *rest != '\0')
    throw UsageError("NCCL_TESTS_MIN_BW=" + text + " is not a number (GB/s)");
  return value;
}

/// One rank of a job says what is wrong, not all.
bool speaks() {
  const std::string rank = environmentText("TUTTI_RANK");
  return rank.empty() || rank == "0";
}

/// The group of this process.
GroupPlace groupOf(const tuttiLaunch_t& launch) {
  try {
    return Split::fromEnvironment().placeOf(launch.rank, launch.nranks);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

/// The arguments without --launch N or --launch=N.
std::vector<std::string> withoutLaunch(const std::vector<std::string>& arguments) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--launch") {
      ++i;
    } else if (!arguments[i].starts_with("--launch=")) {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

/// Becomes `tutti-run -n N` of this very program.
[[noreturn]] void launchRanks(const Options& options) {
  if (underLauncher()) {
    throw UsageError("--launch: this process was started by tutti-run already; leave one of the two away");
  }
  becomeLauncher({"-n", std::to_string(options.launch)}, withoutLaunch(options.arguments));
}

/// A run without end stops at SIGINT or SIGTERM, between two rows and with its report: the ranks look for the
/// pending signal. Blocked before any thread starts, so that all threads inherit it.
void keepStopSignalsPending() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

/// NCCL_TESTS_DEVICE, or else what leaves room for the processes before this one.
int firstDevice(int ranks_here) {
  const std::string text = environmentText("NCCL_TESTS_DEVICE");
  if (text.empty()) return device::localRank() * ranks_here;
  int device = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), device);
  if (error != std::errc{} || *rest != '\0' || device < 0) {
    throw UsageError("NCCL_TESTS_DEVICE=" + text + " is not the number of a device");
  }
  return device;
}

/// The ranks of this process: -t threads, -g in each.
class Job {
 public:
  Job(const Options& options, const Collective& collective, Call call, const device::Devices& devices,
      const tuttiLaunch_t& launch)
      : options_(options),
        collective_(collective),
        call_(call),
        devices_(devices),
        launch_(launch),
        ranks_here_(options.threads * options.gpus),
        first_device_(firstDevice(ranks_here_)),
        group_(groupOf(launch)),
        min_gbps_(minimumBandwidth()) {
    for (const std::string& conflict :
         {conflictWithDevices(options, devices.kind(), devices.count()),
          conflictWithGroup(options, collective, group_.processes * ranks_here_)}) {
      if (!conflict.empty()) throw UsageError(conflict);
    }
    if (launch.rank == 0) report_ = std::make_unique<Report>(options, collective, min_gbps_);
    if (options.cycles == 0) keepStopSignalsPending();
  }

  int run() {
    std::vector<int> statuses(static_cast<std::size_t>(options_.threads), kFailed);
    Ids ids{.world = launch_.id, .group = launch_.id};
    if (isDivided()) ids = agreeOnIds();
    {
      std::vector<std::jthread> threads;
      threads.reserve(statuses.size());
      for (int thread = 0; thread < options_.threads; ++thread) {
        int& status = statuses[static_cast<std::size_t>(thread)];
        threads.emplace_back([this, thread, &ids, &status] { status = runThread(thread, ids); });
      }
    }
    for (const auto& [message, ranks] : failures_) {
      if (ranks == 1) continue;
      sayError(fmt::format("{}: {} more ranks of this process: {}", collective_.program, ranks - 1, message));
    }
    return *std::max_element(statuses.begin(), statuses.end());
  }

 private:
  /// Of the communicator of all ranks, and of that of this process's group.
  struct Ids {
    ncclUniqueId world;
    ncclUniqueId group;
  };

  bool isDivided() const { return group_.processes != launch_.nranks; }

  /// The processes tell each other the ids that their leaders made, over a communicator of one rank each.
  Ids agreeOnIds() const {
    const std::vector<device::Seat> seats = device::takeSeats(devices_, {.id = launch_.id,
                                                                         .nranks = launch_.nranks,
                                                                         .first_rank = launch_.rank,
                                                                         .first_device = first_device_});
    Ids own{};
    if (launch_.rank == 0) check(ncclGetUniqueId(&own.world));
    if (launch_.rank == group_.leader) check(ncclGetUniqueId(&own.group));
    device::Exchange exchange(seats);
    const std::vector<Ids> all = exchange.gather<Ids>(std::span<const Ids>(&own, 1));
    return {.world = all.front().world, .group = all[static_cast<std::size_t>(group_.leader)].group};
  }

  int runThread(int thread, const Ids& ids) {
    const device::SeatPlan plan{.id = ids.world,
                                .nranks = launch_.nranks * ranks_here_,
                                .first_rank = launch_.rank * ranks_here_ + thread * options_.gpus,
                                .count = options_.gpus,
                                .first_device = first_device_ + thread * options_.gpus,
                                .own_streams = !options_.null_stream};
    Report* report = plan.first_rank == 0 ? report_.get() : nullptr;
    try {
      const std::vector<device::Seat> world = device::takeSeats(devices_, plan);
      if (!isDivided()) return measure(world, world, report);
      device::SeatPlan in_group = plan;
      in_group.id = ids.group;
      in_group.nranks = group_.processes * ranks_here_;
      in_group.first_rank = group_.index * ranks_here_ + thread * options_.gpus;
      return measure(device::takeSeats(devices_, in_group), world, report);
    } catch (const UsageError& error) {  // the same on every rank
      if (plan.first_rank == 0) fail(report, plan.first_rank, error.what());
      return kBadUsage;
    } catch (const std::exception& error) {
      fail(report, plan.first_rank, error.what());
      return kFailed;
    }
  }

  int measure(std::span<const device::Seat> seats, std::span<const device::Seat> world, Report* report) {
    device::Exchange exchange(world);
    const std::vector<RankInfo> ranks = gatherRankInfo(world, group_.number, exchange);
    Options options = options_;
    const std::string note = fitIntoMemory(options, largestMessage(ranks, kBuffers));
    if (report != nullptr) report->begin(options, ranks, note);
    Runner runner(options, collective_, call_, seats, world, report);
    Totals totals;
    try {
      totals = runner.run();
    } catch (const Error&) {
      if (!runner.timedOut()) throw;
    }
    if (runner.timedOut()) {
      if (report != nullptr) report->fail(fmt::format("no end within {} s (-T)", options.timeout_s));
      return kFailed;
    }
    if (report != nullptr) report->end(totals);
    const bool fast_enough = !min_gbps_ || totals.reaches(*min_gbps_);
    return totals.wrong == 0 && fast_enough ? 0 : kFailed;
  }

  /// Lowers the largest size to `limit`, and says so.
  static std::string fitIntoMemory(Options& options, std::size_t limit) {
    if (options.sizes.max <= limit) return {};
    if (options.sizes.min > limit) {
      throw UsageError(fmt::format("-b: {} bytes are more than free memory allows, {} bytes per buffer",
                                   options.sizes.min, limit));
    }
    const std::size_t asked = std::exchange(options.sizes.max, limit);
    return fmt::format("Largest size cut from {} to {} bytes: free memory allows no more", asked, limit);
  }

  /// What many threads fail with is said at once by the first, and at the end for the others.
  void fail(Report* report, int rank, const std::string& message) {
    if (report != nullptr) report->fail(message);
    const std::scoped_lock lock(failures_mutex_);
    if (++failures_[message] == 1)
      sayError(fmt::format("{}: rank {}: {}", collective_.program, rank, message));
  }

  const Options& options_;
  const Collective& collective_;
  const Call call_;
  const device::Devices& devices_;
  const tuttiLaunch_t launch_;
  const int ranks_here_;
  const int first_device_;
  const GroupPlace group_;
  const std::optional<double> min_gbps_;
  std::unique_ptr<Report> report_;
  std::mutex failures_mutex_;
  std::map<std::string, int> failures_;  ///< how many ranks failed with each
};

}  // namespace

int refuseArguments(const Collective& collective, const std::string& why) {
  if (speaks()) sayError(fmt::format("{}: {}", collective.program, why));
  return kBadUsage;
}

int runProgram(int argc, char** argv, const Collective& collective, Call call) {
  try {
    ParsedOptions parsed = parseOptions(collective, argc, argv, speaks());
    if (!parsed.options) return parsed.exit_status;
    if (parsed.options->launch > 0) launchRanks(*parsed.options);
    const device::Devices& devices = device::chooseDevices(parsed.options->device);
    fitToDevices(*parsed.options, devices.kind());
    tuttiLaunch_t launch;
    check(tuttiLaunchFromEnvironment(&launch));
    const int status = Job(*parsed.options, collective, call, devices, launch).run();
    // A table that could not be written is no result.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw std::runtime_error("cannot write to standard output");
    }
    return status;
  } catch (const UsageError& error) {
    return refuseArguments(collective, error.what());
  } catch (const std::system_error& error) {
    sayError(fmt::format("{}: {}", collective.program, error.what()));
    return kBadUsage;
  } catch (const std::exception& error) {
    sayError(fmt::format("{}: {}", collective.program, error.what()));
    return kFailed;
  }
}

}  // namespace tutti::perf
