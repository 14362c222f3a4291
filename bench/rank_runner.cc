#include "bench/rank_runner.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "bench/call_operation.h"
#include "bench/group.h"
#include "bench/say.h"

namespace tutti::perf {
namespace {

constexpr int kGarbage = 0xD7;

/// Sums up stretches of time, of the clock on the wall or of this thread's CPU time.
class Stopwatch {
 public:
  explicit Stopwatch(bool cpu_time) : clock_(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {
    resume();
  }

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

std::size_t shiftBytes(const Options& options) {
  std::size_t largest = 0;
  for (const ncclDataType_t type : options.types) largest = std::max(largest, elementBytes(type));
  return static_cast<std::size_t>(options.unaligned) * largest;
}

/// A group of calls; nothing where it is not `wanted`. Ended by end(), or, when a call failed, with the
/// object.
class Group {
 public:
  explicit Group(bool wanted) {
    if (wanted) check(ncclGroupStart());
    open_ = wanted;
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { close(); }

  void end() { check(close()); }

 private:
  ncclResult_t close() {
    if (!std::exchange(open_, false)) return ncclSuccess;
    return ncclGroupEnd();
  }

  bool open_ = false;
};

}  // namespace

RankRunner::RankRunner(const Options& options, const Collective& collective, Call call, Comm& comm,
                       Report* report)
    : options_(options),
      collective_(collective),
      call_(call),
      comm_(comm),
      report_(report),
      rank_(comm.rank()),
      nranks_(comm.size()),
      largest_bytes_(sizesOf(options.sizes).back()),
      buffers_(largest_bytes_, shiftBytes(options), comm.handle(), options.registered),
      watchdog_(comm.handle(), rank_, std::chrono::seconds(options.timeout_s)) {}

Totals RankRunner::run() {
  Totals totals;
  const std::vector<Case> all = cases();
  for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
    for (const Case& item : all) {
      const Row row = runCase(item);
      totals.add(row);
      if (report_ != nullptr) report_->row(row);
      if (options_.cycles == 0 && stopRequested()) return totals;
    }
  }
  return totals;
}

std::vector<RankRunner::Case> RankRunner::cases() const {
  std::vector<Case> kinds;  // without sizes
  for (const ncclDataType_t type : options_.types) {
    const Case kind{
        .type = type, .op = std::nullopt, .root = -1, .element_bytes = elementBytes(type), .layout = {}};
    const auto add = [&](std::optional<ncclRedOp_t> op, int root) {
      kinds.push_back(kind);
      kinds.back().op = op;
      kinds.back().root = root;
    };
    const auto addRoots = [&](std::optional<ncclRedOp_t> op) {
      if (collective_.rooted && options_.root == Options::kAllRoots) {
        for (int root = 0; root < nranks_; ++root) add(op, root);
      } else {
        add(op, collective_.rooted ? options_.root : -1);
      }
    };
    if (collective_.reduces()) {
      for (const ncclRedOp_t op : options_.ops) addRoots(op);
    } else {
      addRoots(std::nullopt);
    }
  }
  const std::vector<std::size_t> sizes = sizesOf(options_.sizes);
  std::vector<Case> all;
  for (const Case& kind : kinds) {
    for (const std::size_t bytes : sizes) {
      all.push_back(kind);
      all.back().layout = collective_.layout(bytes, kind.element_bytes, nranks_, rank_);
    }
  }
  return all;
}

Row RankRunner::runCase(const Case& item) {
  watchdog_.arm(describe(item, false));
  const CallOperation operation(item.op.value_or(ncclSum), item.type, comm_.handle(), rank_);
  call_op_ = operation.get();
  Row row;
  row.bytes = item.spanBytes();
  row.count = item.layout.param;
  row.type = typeName(item.type);
  row.op = item.op ? opName(*item.op) : "none";
  row.root = item.root;
  row.out_of_place = measure(item, false);
  watchdog_.arm(describe(item, true));
  row.in_place = measure(item, true);
  watchdog_.disarm();
  return row;
}

Measurement RankRunner::measure(const Case& item, bool in_place) {
  if (report_ != nullptr) report_->progress(describe(item, in_place));
  // Times at the ends of iterations; the last one is the whole.
  const std::vector<double> ends = timeIterations(item, in_place);
  const double operations = static_cast<double>(options_.iterations) * options_.aggregate;
  Measurement half;
  half.time_us = overRanks(options_.average, gather(comm_, ends.back())) / operations;
  half.alg_gbps = gigabytesPerSecond(static_cast<double>(item.spanBytes()), half.time_us);
  half.bus_gbps = half.alg_gbps * collective_.busFactor(nranks_);
  if (options_.per_iteration) {
    const std::vector<double> all = gather(comm_, ends);
    std::vector<double> slowest(ends.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t iteration = i % ends.size();
      const double taken = all[i] - (iteration == 0 ? 0 : all[i - 1]);
      slowest[iteration] = std::max(slowest[iteration], taken / options_.aggregate);
    }
    half.iterations = statsOf({slowest.begin() + options_.skip, slowest.end()});
  }
  if (options_.checks == 0 || (in_place && !collective_.in_place)) return half;
  if (report_ != nullptr) report_->progress(describe(item, in_place) + ", checking");
  std::uint64_t wrong = 0;
  for (int check = 0; check < options_.checks; ++check) wrong += checkOnce(item, in_place);
  half.wrong = 0;
  for (const double of_rank : gather(comm_, static_cast<double>(wrong))) {
    half.wrong = *half.wrong + static_cast<std::uint64_t>(of_rank);
  }
  return half;
}

std::vector<double> RankRunner::timeIterations(const Case& item, bool in_place) {
  const std::size_t span = item.spanBytes();
  const std::size_t places = span == 0 ? 1 : largest_bytes_ / span;
  std::size_t next = 0;
  const auto operate = [&] {
    invoke(item, operands(item, in_place, next * span));
    if (++next == places) next = 0;
  };
  // As in nccl-tests, the operations of an iteration make one group; but not where each is waited for.
  const bool grouped = options_.aggregate > 1 && options_.blocking != Blocking::kBarrierPerOperation;
  const auto iterate = [&](const auto& after_each) {
    Group group(grouped);
    for (int k = 0; k < options_.aggregate; ++k) {
      operate();
      after_each();
    }
    group.end();
  };
  for (int i = 0; i < options_.warmup; ++i) iterate([] {});
  comm_.barrier();

  std::vector<double> ends;
  ends.reserve(options_.per_iteration ? static_cast<std::size_t>(options_.iterations) : 1);
  Stopwatch stopwatch(options_.cpu_time);
  const auto untimedBarrier = [&] {
    stopwatch.pause();
    comm_.barrier();
    stopwatch.resume();
  };
  for (int i = 0; i < options_.iterations; ++i) {
    iterate([&] {
      if (options_.blocking == Blocking::kBarrierPerOperation) untimedBarrier();
    });
    if (options_.blocking == Blocking::kBarrierPerIteration) untimedBarrier();
    if (options_.per_iteration) ends.push_back(stopwatch.elapsed());
  }
  if (!options_.per_iteration) ends.push_back(stopwatch.elapsed());
  return ends;
}

std::uint64_t RankRunner::checkOnce(const Case& item, bool in_place) {
  const Problem problem{
      .type = item.type, .reduction = item.op, .nranks = nranks_, .repetition = ++repetition_};
  const Operands at = operands(item, in_place, 0);
  std::byte* region = in_place ? operands(item, false, 0).recv : at.recv;
  const std::size_t region_bytes = in_place ? item.spanBytes() : item.layout.recv * item.element_bytes;
  std::memset(region, kGarbage, region_bytes);
  paintGuards(region, region_bytes);
  fillInput(problem, rank_, 0, item.layout.send, at.send);
  invoke(item, at);
  corrupt(item, at.recv);

  const std::size_t damaged = damagedGuards(region, region_bytes);
  if (damaged > 0) {
    sayError(fmt::format("rank {}: {}: {} bytes written outside of the buffer", rank_,
                         describe(item, in_place), damaged));
  }
  return checkResult(item, problem, at, in_place) + damaged;
}

std::uint64_t RankRunner::checkResult(const Case& item, const Problem& problem, const Operands& at,
                                      bool in_place) const {
  const std::string where = fmt::format("rank {}: {}: ", rank_, describe(item, in_place));
  const bool bystander = collective_.outcome == Outcome::kReductionAtRoot && rank_ != item.root;
  Mismatches values;
  if (!bystander) {
    values = compare(item, problem, at.recv);
  } else if (!in_place) {
    values = checkUntouched(at.recv, item.layout.recv * item.element_bytes, std::byte{kGarbage});
  }
  if (values.wrong > 0) {
    sayError(where + fmt::format("first wrong {}: index {}, expected {}, got {} ({} wrong in all)",
                                 bystander ? "byte" : "element", values.first, values.expected, values.got,
                                 values.wrong));
  }
  Mismatches input;
  if (!in_place || bystander) input = checkCopy(problem, rank_, 0, item.layout.send, at.send);
  if (input.wrong > 0) sayError(where + fmt::format("the input was changed, first at index {}", input.first));
  return values.wrong + input.wrong;
}

Mismatches RankRunner::compare(const Case& item, const Problem& problem, const std::byte* received) const {
  const Layout& layout = item.layout;
  const auto own = static_cast<std::size_t>(rank_);
  switch (collective_.outcome) {
    case Outcome::kReduction:
    case Outcome::kReductionAtRoot:
      return checkReduction(problem, 0, layout.recv, received);
    case Outcome::kReductionBlock:
      return checkReduction(problem, own * layout.recv, layout.recv, received);
    case Outcome::kRoot:
      return checkCopy(problem, item.root, 0, layout.recv, received);
    case Outcome::kPrevious:
      return checkCopy(problem, (rank_ + nranks_ - 1) % nranks_, 0, layout.recv, received);
    case Outcome::kGather:
    case Outcome::kTranspose:
      break;
  }
  const std::size_t first = collective_.outcome == Outcome::kTranspose ? own * layout.param : 0;
  Mismatches found;
  for (int rank = 0; rank < nranks_; ++rank) {
    const std::size_t start = static_cast<std::size_t>(rank) * layout.param;
    const std::byte* block = received + start * item.element_bytes;
    found.merge(checkCopy(problem, rank, first, layout.param, block), start);
  }
  return found;
}

/// Flips the second highest bit: of the exponent, so that no tolerance hides it, and not only a zero's sign.
void RankRunner::corrupt(const Case& item, std::byte* received) const {
  const auto& corruption = options_.corruption;
  if (!corruption || corruption->rank != rank_ || corruption->index >= item.layout.recv) return;
  received[(corruption->index + 1) * item.element_bytes - 1] ^= std::byte{0x40};
}

RankRunner::Operands RankRunner::operands(const Case& item, bool in_place, std::size_t shift_bytes) const {
  if (!in_place) return {.send = buffers_.send() + shift_bytes, .recv = buffers_.recv() + shift_bytes};
  std::byte* both = buffers_.recv() + shift_bytes;
  return {.send = both + item.layout.in_place_send * item.element_bytes,
          .recv = both + item.layout.in_place_recv * item.element_bytes};
}

void RankRunner::invoke(const Case& item, const Operands& operands) {
  check(call_({.send = operands.send,
               .recv = operands.recv,
               .count = item.layout.param,
               .type = item.type,
               .op = call_op_,
               .root = item.root,
               .comm = comm_.handle()}));
}

std::string RankRunner::describe(const Case& item, bool in_place) const {
  std::string text = fmt::format("size {} {}", item.spanBytes(), typeName(item.type));
  if (item.op) text += fmt::format(" {}", opName(*item.op));
  if (item.root >= 0) text += fmt::format(" root {}", item.root);
  return text + (in_place ? " in-place" : " out-of-place");
}

bool RankRunner::stopRequested() {
  // The signals are blocked in every thread of a run without end (see program.cc), so they stay pending.
  sigset_t pending;
  ::sigpending(&pending);
  const bool own = ::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1;
  for (const double asked : gather(comm_, own ? 1.0 : 0.0)) {
    if (asked != 0) return true;
  }
  return false;
}

}  // namespace tutti::perf
