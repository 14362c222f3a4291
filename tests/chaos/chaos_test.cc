// Random programs under random faults: who survives must end in time, name the culprit, have no wrong value
// and leave nothing behind.
//
//   TUTTI_CHAOS_SECONDS   how long (default 60)
//   TUTTI_CHAOS_SEED      the first seed (default 0); the next runs have the next seeds
//   TUTTI_CHAOS_RUNS      so many runs instead of a time: 1 replays a seed
//   TUTTI_CHAOS_KIND      only this one, by the name in the table
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/chaos/chaos_run.h"

namespace tutti::test {
namespace {

using std::chrono::steady_clock;

struct Row {
  int runs = 0;
  int as_expected = 0;
  std::vector<double> error_ms;
  double longest_end_ms = 0;
  int wrong_culprits = 0;
  int most_mappings = 0;
  int leaks = 0;
};

std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

void print(const std::array<Row, kChaosCount>& rows) {
  std::printf("%-13s %5s %12s %18s %18s %14s %14s %9s %6s\n", "fault", "runs", "as expected",
              "error median (ms)", "error max (ms)", "end max (ms)", "wrong culprits", "mappings", "leaks");
  for (int i = 0; i < kChaosCount; ++i) {
    Row row = rows[static_cast<std::size_t>(i)];
    if (row.runs == 0) continue;
    std::ranges::sort(row.error_ms);
    const auto time = [&](double share) -> std::string {
      if (row.error_ms.empty()) return "-";
      const auto last = static_cast<double>(row.error_ms.size() - 1);
      return std::to_string(static_cast<int>(row.error_ms[static_cast<std::size_t>(share * last)]));
    };
    std::printf("%-13s %5d %12d %18s %18s %14.0f %14d %+9d %6d\n", name(static_cast<Chaos>(i)), row.runs,
                row.as_expected, time(0.5).c_str(), time(1).c_str(), row.longest_end_ms, row.wrong_culprits,
                row.most_mappings, row.leaks);
  }
}

void add(Row& row, const ChaosOutcome& outcome) {
  ++row.runs;
  row.as_expected += outcome.problems.empty() ? 1 : 0;
  row.error_ms.insert(row.error_ms.end(), outcome.error_ms.begin(), outcome.error_ms.end());
  row.longest_end_ms = std::max(row.longest_end_ms, outcome.longest_end_ms);
  row.wrong_culprits += outcome.wrong_culprits;
  row.most_mappings = std::max(row.most_mappings, outcome.most_mappings);
  row.leaks += outcome.leaks;
}

TEST(Chaos, EveryFaultHealsOrIsNamedAndNothingIsLeft) {
  // Ranks that were killed before they joined are waited for so long by the rendezvous, which is here.
  ASSERT_EQ(::setenv("TUTTI_INIT_TIMEOUT", "10", 0), 0);
  const auto limit = std::chrono::seconds(fromEnvironment("TUTTI_CHAOS_SECONDS", 60));
  const std::uint64_t first = fromEnvironment("TUTTI_CHAOS_SEED", 0);
  const std::uint64_t runs = fromEnvironment("TUTTI_CHAOS_RUNS", ~std::uint64_t{0});
  const char* only = std::getenv("TUTTI_CHAOS_KIND");
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(first));
  std::array<Row, kChaosCount> rows;
  const auto end = steady_clock::now() + limit;
  const bool is_timed = runs == ~std::uint64_t{0};
  std::uint64_t made = 0;
  for (std::uint64_t seed = first; is_timed ? steady_clock::now() < end : made < runs; ++seed) {
    const ChaosPlan plan = drawPlan(seed);
    if (only != nullptr && std::string(only) != name(plan.chaos)) continue;
    ++made;
    const ChaosOutcome outcome = carryOut(plan);
    add(rows[static_cast<std::size_t>(plan.chaos)], outcome);
    if (outcome.problems.empty()) continue;
    std::string text = plan.text();
    for (const auto& problem : outcome.problems) text += "\n  " + problem;
    ADD_FAILURE() << text;
  }
  print(rows);
}

}  // namespace
}  // namespace tutti::test
