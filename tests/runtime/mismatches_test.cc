// Calls that differ in one argument are found by every way of carrying out collectives, and both sides'
// arguments named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/harness/rank_group.h"

namespace tutti {
namespace {

using Parameter = std::tuple<const char*, int, int>;  // plan, ranks, hosts

const test::Environment kDeadlines{
    {"TUTTI_INIT_TIMEOUT", "90"}, {"TUTTI_TIMEOUT", "60"}, {"TUTTI_STALL_TIMEOUT", "60"}};

/// Of what programs say: how long each took to find what differed. Everything else is a failure.
class Findings {
 public:
  void add(const test::CommandResult& result, const std::string& who) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("found ")) {
        times_.push_back(std::stoi(line.substr(6)));
      } else {
        ADD_FAILURE() << who << ": " << line;
      }
    }
  }

  void finish() {
    ASSERT_FALSE(times_.empty());
    std::ranges::sort(times_);
    std::printf("%zu errors, after %d ms (median), %d ms (longest)\n", times_.size(),
                times_[times_.size() / 2], times_.back());
    EXPECT_LT(times_.back(), 45'000);  // generous, for loaded machines: long before any deadline
  }

 private:
  std::vector<int> times_;
};

class Mismatches : public testing::TestWithParam<Parameter> {};

TEST_P(Mismatches, AreFoundAndNamedOnBothSides) {
  const auto& [plan, nranks, hosts] = GetParam();
  test::Environment environment = kDeadlines;
  environment["TUTTI_PLAN"] = plan;
  test::RankGroup group(
      nranks, [](int) { return std::vector<std::string>{}; }, environment, {}, hosts, "mismatch_program");
  Findings findings;
  for (int rank = 0; rank < nranks; ++rank)
    findings.add(group[rank].wait(std::chrono::seconds(200)), "rank " + std::to_string(rank));
  findings.finish();
}

constexpr const char* kPlans[] = {"ring", "direct/slots", "one_shot/slots", "hierarchical", "/packets"};

INSTANTIATE_TEST_SUITE_P(All, Mismatches,
                         testing::Combine(testing::ValuesIn(kPlans), testing::Values(2, 4),
                                          testing::Values(1, 2)));

class MismatchesOfThreads : public testing::TestWithParam<const char*> {};

TEST_P(MismatchesOfThreads, AreFoundAndNamedOnBothSides) {
  test::Environment environment = kDeadlines;
  environment["TUTTI_PLAN"] = GetParam();
  Findings findings;
  findings.add(test::runCommand({"mismatch_program", "3"}, environment, std::chrono::seconds(200)),
               "threads");
  findings.finish();
}

INSTANTIATE_TEST_SUITE_P(All, MismatchesOfThreads, testing::ValuesIn(kPlans));

}  // namespace
}  // namespace tutti
