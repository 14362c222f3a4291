#include "tests/chaos/chaos_run.h"

#include <csignal>
#include <sstream>
#include <thread>

#include "tests/harness/rank_group.h"
#include "tests/harness/resources.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Generous, for loaded machines and sanitizers; what was measured is printed.
constexpr double kMostErrorMs = 30'000;
constexpr double kMostEndMs = 20'000;
constexpr seconds kRunTime{150};
constexpr int kMostMappings =
    kCountsMemory ? 12 : 1'000'000;  ///< more than before: stacks and pages that the C library keeps

long long nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

/// What a rank has said of itself; see chaos_program.cc.
struct Report {
  std::string result;  ///< ok, error or wrong; empty: it did not come so far
  std::string text;
  long long result_ns = 0;
  long long fault_ns = 0;  ///< of its own doing
  double end_ms = -1;
  std::vector<int> held;
  std::vector<int> holds;
};

Report parse(const std::string& out) {
  Report report;
  std::istringstream lines(out);
  const auto numbers = [](std::istringstream& fields) {
    std::vector<int> result;
    for (int value = 0; fields >> value;) result.push_back(value);
    return result;
  };
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string what;
    fields >> what;
    if (what == "result") {
      fields >> report.result >> report.result_ns;
      std::getline(fields >> std::ws, report.text);
    } else if (what == "fault") {
      fields >> report.fault_ns;
    } else if (what == "ended") {
      fields >> report.end_ms;
    } else if (what == "held") {
      report.held = numbers(fields);
    } else if (what == "holds") {
      report.holds = numbers(fields);
    }
  }
  return report;
}

class Run {
 public:
  explicit Run(const ChaosPlan& plan)
      : plan_(plan),
        group_(
            plan.nranks,
            [&](int rank) {
              auto arguments = plan.arguments;
              if (rank == plan.victim) {
                arguments.insert(arguments.end(), plan.victim_arguments.begin(), plan.victim_arguments.end());
              }
              return arguments;
            },
            plan.environment, {}, plan.hosts, "chaos_program"),
        victim_pid_(group_[plan.victim].pid()) {}

  ChaosOutcome carryOut() {
    const bool is_ready = plan_.chaos == Chaos::kill_joining || awaitReady();
    if (is_ready) inject();
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      if (plan_.chaos == Chaos::stop && rank == plan_.victim) continue;  // ends with this object
      results_[rank] = group_[rank].wait(kRunTime);
      reports_[rank] = parse(results_[rank].out);
      if (reports_[rank].fault_ns != 0) fault_ns_ = reports_[rank].fault_ns;
    }
    for (const auto& [rank, report] : reports_) judge(rank, report);
    return outcome_;
  }

 private:
  bool awaitReady() {
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      if (!group_[rank].waitForOutput("ready", kRunTime)) return false;
    }
    return true;
  }

  void inject() {
    std::this_thread::sleep_for(plan_.moment);
    fault_ns_ = nowNs();
    if (plan_.chaos == Chaos::kill || plan_.chaos == Chaos::kill_joining) group_[plan_.victim].kill(SIGKILL);
    if (plan_.chaos != Chaos::stop && plan_.chaos != Chaos::pause) return;
    group_[plan_.victim].kill(SIGSTOP);
    if (plan_.chaos == Chaos::stop) return;
    std::this_thread::sleep_for(plan_.pause);
    group_[plan_.victim].kill(SIGCONT);
  }

  void complain(int rank, const std::string& what) {
    outcome_.problems.push_back("rank " + std::to_string(rank) +
                                (rank == plan_.victim ? " (victim): " : ": ") + what);
  }

  void judge(int rank, const Report& report) {
    const CommandResult& result = results_[rank];
    const bool dies =
        plan_.chaos == Chaos::kill || plan_.chaos == Chaos::kill_joining || plan_.chaos == Chaos::leave;
    if (rank == plan_.victim && dies && !result.timed_out) return;
    if (result.timed_out || result.exit_code != 0 || report.result.empty()) {
      complain(rank, (result.timed_out ? "did not end in time: " : "ended badly: ") + result.out +
                         result.err + " signal " + std::to_string(result.signal));
      return;
    }
    if (report.result == "wrong") complain(rank, "wrong values: " + report.text);
    if (heals(plan_.chaos) && report.result == "error") complain(rank, "failed: " + report.text);
    if (!heals(plan_.chaos)) judgeError(rank, report);
    judgeEnd(rank, report);
  }

  void judgeError(int rank, const Report& report) {
    if (report.result != "error") return complain(rank, "noticed nothing: " + report.result);
    const bool speaks_of_itself = rank == plan_.victim;  // aborted or differing
    if (!speaks_of_itself && !namesVictim(report.text)) {
      ++outcome_.wrong_culprits;
      complain(rank, "names not rank " + std::to_string(plan_.victim) + " (pid " +
                         std::to_string(victim_pid_) + "): " + report.text);
    }
    if (plan_.chaos == Chaos::differ && report.text.find("different operations") == std::string::npos) {
      complain(rank, "speaks of no difference: " + report.text);
    }
    const double ms = static_cast<double>(report.result_ns - fault_ns_) / 1e6;
    if (!speaks_of_itself) outcome_.error_ms.push_back(ms);
    if (ms > kMostErrorMs) complain(rank, "knew after " + std::to_string(ms) + " ms: " + report.text);
  }

  bool namesVictim(const std::string& text) const {
    const std::string rank = "rank " + std::to_string(plan_.victim);
    if (text.find(rank + " (pid " + std::to_string(victim_pid_) + " on ") != std::string::npos) return true;
    // Who was killed before it had joined is known by its number only.
    return plan_.chaos == Chaos::kill_joining && text.find("did not come within") != std::string::npos &&
           text.find(": " + rank + ". ") != std::string::npos;
  }

  void judgeEnd(int rank, const Report& report) {
    outcome_.longest_end_ms = std::max(outcome_.longest_end_ms, report.end_ms);
    if (report.end_ms > kMostEndMs || report.end_ms < 0) {
      complain(rank, "took " + std::to_string(report.end_ms) + " ms to end");
    }
    constexpr const char* kNames[] = {"descriptors", "threads", "mappings", "shared mappings"};
    constexpr int kMore[] = {0, 0, kMostMappings, 0};
    if (report.held.size() != std::size(kNames) || report.holds.size() != std::size(kNames)) {
      return complain(rank, "did not say what it holds");
    }
    outcome_.most_mappings = std::max(outcome_.most_mappings, report.holds[2] - report.held[2]);
    bool is_leaking = false;
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      if (report.holds[i] <= report.held[i] + kMore[i]) continue;
      is_leaking = true;
      complain(rank, std::string("leaves ") + kNames[i] + ": " + std::to_string(report.held[i]) +
                         " before, " + std::to_string(report.holds[i]) + " after; " + report.text);
    }
    outcome_.leaks += is_leaking ? 1 : 0;
  }

  const ChaosPlan& plan_;
  RankGroup group_;
  int victim_pid_;
  long long fault_ns_ = 0;
  std::map<int, CommandResult> results_;
  std::map<int, Report> reports_;
  ChaosOutcome outcome_;
};

}  // namespace

ChaosOutcome carryOut(const ChaosPlan& plan) { return Run(plan).carryOut(); }

}  // namespace tutti::test
