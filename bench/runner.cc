#include "bench/runner.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>

#include "bench/graphs.h"
#include "bench/sizes.h"
#include "bench/traffic_summary.h"
#include "bench/trial.h"

namespace tutti::perf {
namespace {

/// Sums up stretches of time of a clock.
class Stopwatch {
 public:
  explicit Stopwatch(clockid_t clock) : clock_(clock) { resume(); }

  void pause() { stored_ += now() - started_; }
  void resume() { started_ = now(); }
  /// Microseconds while it ran; it is running now.
  double elapsed() const { return stored_ + now() - started_; }

 private:
  double now() const {
    std::timespec time{};
    ::clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }

  clockid_t clock_;
  double stored_ = 0;
  double started_ = 0;
};

/// -C: on a GPU the time until all is queued, in host memory, where calls do the work, the CPU time of it.
clockid_t clockOf(const Options& options, const device::Seat& seat) {
  const bool cpu_time = options.cpu_time && seat.device().kind() == device::Kind::host;
  return cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

std::vector<ncclComm_t> commsOf(std::span<const device::Seat> seats, std::span<const device::Seat> world) {
  std::vector<ncclComm_t> comms;
  for (const device::Seat& seat : seats) comms.push_back(seat.comm());
  if (world.data() == seats.data()) return comms;
  for (const device::Seat& seat : world) comms.push_back(seat.comm());
  return comms;
}

}  // namespace

Runner::Runner(const Options& options, const Collective& collective, Call call,
               std::span<const device::Seat> seats, std::span<const device::Seat> world, Report* report)
    : options_(options),
      collective_(collective),
      seats_(seats),
      report_(report),
      exchange_(world),
      nranks_(device::Exchange(seats).size()),
      largest_bytes_(sizesOf(options.sizes).back()),
      watchdog_(commsOf(seats, world), world.front().rank(), std::chrono::seconds(options.timeout_s)) {
  for (const device::Seat& seat : seats) {
    ranks_.emplace_back(options, collective, call, seat, nranks_);
  }
}

Totals Runner::run() {
  Totals totals;
  const std::vector<Case> all = casesOf(options_, collective_, nranks_);
  for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
    for (const Case& item : all) {
      const Row row = runCase(item);
      totals.add(row);
      if (report_ != nullptr) report_->row(row);
      if (report_ != nullptr && wantsTrafficSummary(collective_)) {
        report_->note(trafficSummary(collective_, item, nranks_, row.out_of_place.time_us));
      }
      if (options_.cycles == 0 && stopRequested()) return totals;
    }
  }
  return totals;
}

Row Runner::runCase(const Case& item) {
  watchdog_.arm(item.describe(false));
  for (Rank& rank : ranks_) rank.begin(item);
  Row row;
  row.bytes = item.span_bytes;
  row.count = item.count;
  row.type = typeName(item.type);
  row.op = item.op ? opName(*item.op) : "none";
  row.root = item.root;
  row.out_of_place = measure(item, false);
  watchdog_.arm(item.describe(true));
  row.in_place = measure(item, true);
  watchdog_.disarm();
  return row;
}

Measurement Runner::measure(const Case& item, bool in_place) {
  if (report_ != nullptr) report_->progress(item.describe(in_place));
  // Times at the ends of iterations; the last one is the whole.
  const std::vector<double> ends = timeIterations(item, in_place);
  const double operations = static_cast<double>(options_.iterations) * options_.aggregate;
  const std::vector<double> wholes = gather({ends.back()});
  Measurement half;
  half.time_us = overRanks(options_.average, wholes) / operations;
  half.alg_gbps = gigabytesPerSecond(collective_.algBytes(item.span_bytes, nranks_), half.time_us);
  half.bus_gbps = half.alg_gbps * collective_.busFactor(nranks_);
  if (options_.per_iteration) {
    const std::vector<double> all = gather(ends);
    std::vector<double> slowest(ends.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t iteration = i % ends.size();
      const double taken = all[i] - (iteration == 0 ? 0 : all[i - 1]);
      slowest[iteration] = std::max(slowest[iteration], taken / options_.aggregate);
    }
    half.iterations = statsOf({slowest.begin() + options_.skip, slowest.end()});
  }
  if (options_.checks == 0 || (in_place && !collective_.in_place)) return half;
  if (report_ != nullptr) report_->progress(item.describe(in_place) + ", checking");
  std::uint64_t wrong = 0;
  for (int check = 0; check < options_.checks; ++check) wrong += checkOnce(item, in_place);
  // Of all ranks of a thread, of which the first one tells.
  std::vector<std::uint64_t> own(ranks_.size());
  own.front() = wrong;
  half.wrong = 0;
  for (const std::uint64_t of_rank : exchange_.gather<std::uint64_t>(own)) *half.wrong += of_rank;
  return half;
}

std::vector<double> Runner::timeIterations(const Case& item, bool in_place) {
  const std::size_t span = item.span_bytes;
  const std::size_t places = span == 0 ? 1 : largest_bytes_ / span;
  std::size_t next = 0;
  // As in nccl-tests, the operations of an iteration make one group; but not where each is waited for.
  const bool each =
      options_.blocking == Blocking::kBarrierPerOperation || options_.blocking == Blocking::kWait;
  const auto iterate = [&](const auto& after_each) {
    const auto operations = [&] {
      for (int k = 0; k < options_.aggregate; ++k) {
        operate(in_place, next * span);
        if (++next == places) next = 0;
        after_each();
      }
    };
    if (options_.aggregate == 1 || each) return operations();
    Group group;
    operations();
    group.end();
  };
  for (int i = 0; i < options_.warmup; ++i) iterate([] {});
  finish();
  if (options_.graph > 0) return timeReplays([&] { iterate([] {}); });
  exchange_.barrier();

  std::vector<double> ends;
  ends.reserve(options_.per_iteration ? static_cast<std::size_t>(options_.iterations) : 1);
  Stopwatch stopwatch(clockOf(options_, seats_.front()));
  const auto untimedBarrier = [&] {
    stopwatch.pause();
    exchange_.barrier();
    stopwatch.resume();
  };
  for (int i = 0; i < options_.iterations; ++i) {
    iterate([&] {
      if (each) finish();
      if (options_.blocking == Blocking::kBarrierPerOperation) untimedBarrier();
    });
    const bool meet = options_.blocking == Blocking::kBarrierPerIteration;
    if (meet || (options_.per_iteration && !options_.cpu_time)) finish();
    if (meet) untimedBarrier();
    if (options_.per_iteration) ends.push_back(stopwatch.elapsed());
  }
  if (!options_.cpu_time) finish();
  if (!options_.per_iteration) ends.push_back(stopwatch.elapsed());
  finish();
  return ends;
}

/// Of one replay.
std::vector<double> Runner::timeReplays(const std::function<void()>& iterate) {
  const Graphs graphs(seats_, [&] {
    for (int i = 0; i < options_.iterations; ++i) iterate();
  });
  exchange_.barrier();
  const Stopwatch stopwatch(clockOf(options_, seats_.front()));
  replay(graphs);
  if (!options_.cpu_time) finish();
  const double elapsed = stopwatch.elapsed();
  finish();
  return {elapsed / options_.graph};
}

/// -G times. What has failed ends at once and would be launched for nothing: nobody else says so.
void Runner::replay(const Graphs& graphs) const {
  using std::chrono::steady_clock;
  constexpr auto kLook = std::chrono::milliseconds(50);
  auto next = steady_clock::now() + kLook;
  for (int i = 0; i < options_.graph; ++i) {
    graphs.launch();
    if (steady_clock::now() < next) continue;
    for (const device::Seat& seat : seats_) seat.requireGood();
    next = steady_clock::now() + kLook;
  }
}

std::uint64_t Runner::checkOnce(const Case& item, bool in_place) {
  const Problem problem{
      .type = item.type, .reduction = item.op, .nranks = nranks_, .repetition = ++repetition_};
  std::deque<Trial> trials;
  for (const Rank& rank : ranks_) trials.emplace_back(collective_, rank, item, problem, in_place);
  if (options_.graph > 0) {
    const Graphs graphs(seats_, [&] { operate(in_place, 0); });
    graphs.launch();
    finish();
  } else {
    operate(in_place, 0);
    finish();
  }
  std::uint64_t wrong = 0;
  for (Trial& trial : trials) wrong += trial.verify(options_.corruption);
  return wrong;
}

/// Queues the operation on all ranks of this thread.
void Runner::operate(bool in_place, std::size_t shift_bytes) {
  device::inOneGroup(ranks_.size(),
                     [&](std::size_t i) { ranks_[i].invoke(ranks_[i].operands(in_place, shift_bytes)); });
}

/// Waits for what they have queued.
void Runner::finish() {
  for (const device::Seat& seat : seats_) seat.finish();
}

/// `own` of every rank, one rank after the other; the ranks of a thread have the same.
std::vector<double> Runner::gather(const std::vector<double>& own) {
  std::vector<double> of_ranks;
  for (std::size_t i = 0; i < ranks_.size(); ++i) of_ranks.insert(of_ranks.end(), own.begin(), own.end());
  return exchange_.gather<double>(of_ranks);
}

bool Runner::stopRequested() {
  // The signals are blocked in every thread of a run without end (see program.cc), so they stay pending.
  sigset_t pending;
  ::sigpending(&pending);
  const bool own = ::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1;
  const std::vector<double> all = gather({own ? 1.0 : 0.0});
  return std::any_of(all.begin(), all.end(), [](double asked) { return asked != 0; });
}

}  // namespace tutti::perf
