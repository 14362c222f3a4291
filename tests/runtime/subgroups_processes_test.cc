// Communicators that are made out of others, among processes of one or two hosts: also when a process has
// died.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/rank_group.h"

namespace tutti {
namespace {

using test::RankGroup;

RankGroup group(int nranks, const std::vector<std::string>& arguments, int hosts) {
  return RankGroup(
      nranks, [&](int) { return arguments; }, {{"TUTTI_INIT_TIMEOUT", "60"}}, {}, hosts, "subgroup_program");
}

class Subgroups : public testing::TestWithParam<int> {};

TEST_P(Subgroups, AreSplit) { test::expectSuccess(group(5, {"split"}, GetParam()).wait()); }

TEST_P(Subgroups, ShrinkAfterTheLastRankDied) {
  test::expectSuccess(group(4, {"shrink", "3"}, GetParam()).wait());
}

TEST_P(Subgroups, ShrinkAfterAnotherRankDied) {
  // Between hosts the control plane hangs on rank 0.
  const std::string victim = GetParam() == 1 ? "0" : "1";
  test::expectSuccess(group(4, {"shrink", victim}, GetParam()).wait());
}

TEST_P(Subgroups, ARankThatDiesInsteadOfSplittingIsNamed) {
  for (const int victim : {0, 2}) {
    auto ranks = group(3, {"die", std::to_string(victim)}, GetParam());
    const auto results = ranks.wait();
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      test::expectSays(results[static_cast<std::size_t>(rank)], "rank " + std::to_string(victim) + " (pid ");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Processes, Subgroups, testing::Values(1, 2),
                         [](const auto& hosts) { return hosts.param == 1 ? "OfOneHost" : "OfTwoHosts"; });

}  // namespace
}  // namespace tutti
