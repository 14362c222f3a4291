// Communicators that are made out of others, among processes of one or two hosts: also when a process has
// died.
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/rank_group.h"

namespace tutti {
namespace {

using test::RankGroup;

/// Ranks of subgroup_program.
class Group : public RankGroup {
 public:
  Group(int nranks, const std::vector<std::string>& arguments, int hosts,
        const std::map<int, test::Environment>& per_rank = {})
      : RankGroup(
            nranks, [&](int) { return arguments; }, {{"TUTTI_INIT_TIMEOUT", "90"}}, per_rank, hosts,
            "subgroup_program") {}
};

class Subgroups : public testing::TestWithParam<int> {};

TEST_P(Subgroups, AreSplit) { test::expectSuccess(Group(5, {"split"}, GetParam()).wait()); }

TEST_P(Subgroups, ShrinkAfterTheLastRankDied) {
  test::expectSuccess(Group(4, {"shrink", "3"}, GetParam()).wait());
}

TEST_P(Subgroups, ShrinkAfterAnotherRankDied) {
  // Between hosts the control plane hangs on rank 0.
  const std::string victim = GetParam() == 1 ? "0" : "1";
  test::expectSuccess(Group(4, {"shrink", victim}, GetParam()).wait());
}

TEST_P(Subgroups, ARankThatDiesInsteadOfSplittingIsNamed) {
  for (const int victim : {0, 2}) {
    Group ranks(3, {"die", std::to_string(victim)}, GetParam());
    const auto results = ranks.wait();
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      test::expectSays(results[static_cast<std::size_t>(rank)], "rank " + std::to_string(victim) + " (pid ");
    }
  }
}

TEST_P(Subgroups, ARankThatCallsSomethingElseThanTheSplitIsNamedWithIt) {
  for (const int other : {0, 3}) {
    Group ranks(4, {"differ", std::to_string(other)}, GetParam());
    for (const auto& result : ranks.wait()) {
      test::expectSays(result, "rank " + std::to_string(other) + " (pid ");
      test::expectSays(result, "AllReduce #2 sum float ×30");
      test::expectSays(result, "is in ncclCommSplit, after AllReduce #1 ");
    }
  }
}

TEST_P(Subgroups, ARankThatShrinksWhereOthersSplitIsNamedWithIt) {
  for (const int other : {0, 3}) {
    for (const auto& result : Group(4, {"shrink-or-split", std::to_string(other)}, GetParam()).wait()) {
      test::expectSays(result, "rank " + std::to_string(other) + " (pid ");
      test::expectSays(result, "ncclCommShrink, excluding rank 1");
      test::expectSays(result, ": ncclCommSplit");
    }
  }
}

TEST_P(Subgroups, ListsOfShrinksThatDifferAreNamed) {
  for (const int other : {0, 3}) {
    Group ranks(4, {"lists", std::to_string(other)}, GetParam());
    for (const int rank : {0, 2, 3}) {
      const auto result = ranks[rank].wait(std::chrono::seconds(60));
      test::expectSays(result, "rank " + std::to_string(other) + " (pid ");
      test::expectSays(result, "ncclCommShrink, excluding rank 1");
      test::expectSays(result, "ncclCommShrink, excluding rank 2");
    }
    ranks[1].kill(SIGKILL);
  }
}

/// The meeting place has gone with it, which says nothing of why.
TEST_P(Subgroups, ARankThatDiedInTheShrinkIsNamedByWhoComesLater) {
  Group ranks(3, {"late"}, GetParam(), {{0, {{"NCCL_DEBUG", "INFO"}}}});
  ASSERT_TRUE(ranks[0].waitForError("as one of 2 ranks", std::chrono::seconds(60)));
  ranks[0].kill(SIGKILL);
  const auto result = ranks.wait()[2];
  test::expectSays(result, "rank 0 (pid ");
  test::expectSays(result, "is gone");
  EXPECT_EQ(result.err.find("unique id"), std::string::npos) << result.err;
}

/// Between hosts the others do not hear of each other without rank 0: they say what helps.
TEST(SubgroupsOfAll, AShrinkWithoutRank0SaysWhatHelps) {
  const std::map<int, test::Environment> impatient = {{1, {{"TUTTI_INIT_TIMEOUT", "15"}}}};
  Group ranks(3, {"shrink", "0"}, 3, impatient);
  const auto result = ranks[1].wait(std::chrono::seconds(60));
  test::expectSays(result, "ncclCommShrink: not all ranks called it within ");
  test::expectSays(result, ". rank 0 (pid ");
  test::expectSays(result, " has ended, over which ranks of other hosts hear of each other");
  test::expectSays(result, "ncclCommInitRank");
  ranks[2].kill(SIGKILL);
  ranks[2].wait();
}

INSTANTIATE_TEST_SUITE_P(Processes, Subgroups, testing::Values(1, 2),
                         [](const auto& hosts) { return hosts.param == 1 ? "OfOneHost" : "OfTwoHosts"; });

/// One rank gives up long before the others, and ends: they name who is missing, and not that one. On one
/// host and on two, all at once, since they wait for seconds.
TEST(SubgroupsOfAll, ARankThatDoesNotSplitIsNamedByAll) {
  struct Roles {
    int hosts;
    int absent;
    int first;  ///< to give up
  };
  constexpr Roles kRoles[] = {{1, 0, 1}, {1, 3, 0}, {2, 0, 3}, {2, 2, 1}};
  const test::Environment impatient = {{"TUTTI_INIT_TIMEOUT", "20"}};
  std::vector<std::unique_ptr<Group>> groups;
  for (const Roles& roles : kRoles) {
    const std::vector<std::string> arguments = {"absent", std::to_string(roles.absent)};
    const std::map<int, test::Environment> per_rank = {{roles.first, impatient}};
    groups.push_back(std::make_unique<Group>(4, arguments, roles.hosts, per_rank));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group& ranks = *groups[i];
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == kRoles[i].absent) continue;
      const auto result = ranks[rank].wait(std::chrono::seconds(60));
      test::expectSays(result, "ncclCommSplit");
      test::expectSays(result, "rank " + std::to_string(kRoles[i].absent) + " (pid ");
      for (const char* const blame : {"destroyed", "unique id", "is gone"}) {
        EXPECT_EQ(result.err.find(blame), std::string::npos) << result.err;
      }
    }
    ranks[kRoles[i].absent].kill(SIGKILL);
    ranks[kRoles[i].absent].wait();
  }
}

}  // namespace
}  // namespace tutti
