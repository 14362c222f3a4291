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

class Mismatches : public testing::TestWithParam<Parameter> {};

TEST_P(Mismatches, AreFoundAndNamedOnBothSides) {
  const auto& [plan, nranks, hosts] = GetParam();
  test::RankGroup group(
      nranks, [](int) { return std::vector<std::string>{}; },
      {{"TUTTI_PLAN", plan},
       {"TUTTI_INIT_TIMEOUT", "30"},
       {"TUTTI_TIMEOUT", "20"},
       {"TUTTI_STALL_TIMEOUT", "20"}},
      {}, hosts, "mismatch_program");
  std::vector<int> times;
  for (int rank = 0; rank < nranks; ++rank) {
    const auto result = group[rank].wait(std::chrono::seconds(200));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("found ")) {
        times.push_back(std::stoi(line.substr(6)));
      } else {
        ADD_FAILURE() << "rank " << rank << ": " << line;
      }
    }
  }
  ASSERT_FALSE(times.empty());
  std::ranges::sort(times);
  std::printf("%zu errors, after %d ms (median), %d ms (longest)\n", times.size(), times[times.size() / 2],
              times.back());
  EXPECT_LT(times.back(), 15'000);  // generous, for loaded machines
}

INSTANTIATE_TEST_SUITE_P(All, Mismatches,
                         testing::Combine(testing::Values("ring", "direct/slots", "one_shot/slots",
                                                          "hierarchical", "/packets"),
                                          testing::Values(2, 4), testing::Values(1, 2)));

}  // namespace
}  // namespace tutti
