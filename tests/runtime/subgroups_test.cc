// Communicators that are made out of others: ncclCommSplit, ncclCommShrink, ncclCommRevoke, among threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"

namespace tutti {
namespace {

using test::lastError;
using test::settledStateOf;
using test::stateOf;

void require(bool condition, const std::string& words) {
  if (!condition) throw std::runtime_error(words);
}

int countOf(ncclComm_t comm) {
  int count = -1;
  check(ncclCommCount(comm, &count));
  return count;
}

int rankOf(ncclComm_t comm) {
  int rank = -1;
  check(ncclCommUserRank(comm, &rank));
  return rank;
}

/// A rank's number in its parent, gathered over the child: who is where.
std::vector<int> membersOf(ncclComm_t comm, int parent_rank) {
  std::vector<int> members(static_cast<std::size_t>(countOf(comm)), -1);
  check(ncclAllGather(&parent_rank, members.data(), 1, ncclInt32, comm, nullptr));
  return members;
}

struct Wish {
  int color;
  int key;
};

/// Who is in the child of `rank`, by the words of NCCL's documentation: those of its colour by key, then by
/// rank.
std::vector<int> expectedMembers(const std::vector<Wish>& wishes, int rank) {
  std::vector<int> members;
  for (int r = 0; r < static_cast<int>(wishes.size()); ++r) {
    if (wishes[static_cast<std::size_t>(r)].color == wishes[static_cast<std::size_t>(rank)].color) {
      members.push_back(r);
    }
  }
  std::sort(members.begin(), members.end(), [&](int a, int b) {
    const int key_a = wishes[static_cast<std::size_t>(a)].key;
    const int key_b = wishes[static_cast<std::size_t>(b)].key;
    return key_a != key_b ? key_a < key_b : a < b;
  });
  return members;
}

void splitAndCheck(Comm& parent, const std::vector<Wish>& wishes) {
  const Wish wish = wishes[static_cast<std::size_t>(parent.rank())];
  auto child = reinterpret_cast<ncclComm_t>(1);
  check(ncclCommSplit(parent.handle(), wish.color, wish.key, &child, nullptr));
  if (wish.color == NCCL_SPLIT_NOCOLOR) return require(child == nullptr, "a child without a colour");
  const std::vector<int> expected = expectedMembers(wishes, parent.rank());
  const std::vector<int> members = membersOf(child, parent.rank());
  require(members == expected, "wrong members");
  require(members[static_cast<std::size_t>(rankOf(child))] == parent.rank(), "wrong rank");
  auto sum = static_cast<float>(parent.rank() + 1);
  check(ncclAllReduce(&sum, &sum, 1, ncclFloat, ncclSum, child, nullptr));
  require(sum == static_cast<float>(std::accumulate(expected.begin(), expected.end(), 0) +
                                    static_cast<int>(expected.size())),
          "wrong sum");
  check(ncclCommDestroy(child));
}

TEST(Split, ByColourAndKey) {
  EXPECT_EQ(test::runRanks(5,
                           [](Comm& comm) {
                             splitAndCheck(comm, {{0, 3}, {1, 0}, {0, -7}, {1, 0}, {0, 3}});
                             splitAndCheck(comm, {{9, 0}, {9, 0}, {NCCL_SPLIT_NOCOLOR, 0}, {9, 0}, {4, 0}});
                             splitAndCheck(comm, std::vector<Wish>(5, {NCCL_SPLIT_NOCOLOR, 1}));
                             comm.barrier();  // the parent goes on
                           }),
            test::noErrors(5));
}

TEST(Split, OfAnyShape) {
  EXPECT_EQ(test::runRanks(4,
                           [](Comm& comm) {
                             std::mt19937 random(1);
                             for (int round = 0; round < 6; ++round) {
                               std::vector<Wish> wishes(4);
                               for (Wish& wish : wishes) {
                                 wish = {static_cast<int>(random() % 4) - 1, static_cast<int>(random() % 3)};
                               }
                               splitAndCheck(comm, wishes);
                             }
                           }),
            test::noErrors(4));
}

TEST(Split, ChildrenOutliveTheirParentAndAreSplitAgain) {
  const ncclUniqueId id = test::newId();
  EXPECT_EQ(test::runThreads(4,
                             [&](int rank) {
                               ncclComm_t child = nullptr;
                               {
                                 Comm parent(4, id, rank);
                                 check(ncclCommSplit(parent.handle(), rank / 2, rank, &child, nullptr));
                               }
                               Comm middle(child);
                               splitAndCheck(middle, {{0, 1}, {0, 0}});
                             }),
            test::noErrors(4));
}

TEST(Split, OneThreadSplitsSeveralRanksInAGroup) {
  ncclComm_t comms[3];
  ncclComm_t children[3];
  check(ncclCommInitAll(comms, 3, nullptr));
  check(ncclGroupStart());
  for (int r = 0; r < 3; ++r) check(ncclCommSplit(comms[r], r == 1 ? 7 : 2, -r, &children[r], nullptr));
  check(ncclGroupEnd());
  EXPECT_EQ(countOf(children[1]), 1);
  EXPECT_EQ(countOf(children[0]), 2);
  EXPECT_EQ(rankOf(children[0]), 1);
  EXPECT_EQ(rankOf(children[2]), 0);
  // Any order will do.
  check(ncclCommDestroy(comms[1]));
  for (const ncclComm_t child : children) check(ncclCommDestroy(child));
  check(ncclCommDestroy(comms[2]));
  check(ncclCommDestroy(comms[0]));
}

TEST(Split, OfANonBlockingCommunicatorGoesOnInTheBackground) {
  const ncclUniqueId id = test::newId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2];
  ncclComm_t children[2];
  for (int r = 0; r < 2; ++r) ASSERT_EQ(ncclCommInitRankConfig(&comms[r], 2, id, r, &config), ncclInProgress);
  for (const ncclComm_t comm : comms) ASSERT_EQ(settledStateOf(comm), ncclSuccess) << lastError();
  ASSERT_EQ(ncclCommSplit(comms[0], 0, 0, &children[0], nullptr), ncclInProgress);
  EXPECT_EQ(stateOf(comms[0]), ncclInProgress);  // rank 1 is not there yet
  int count = 0;
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommCount(comms[0], &count), "being split");
  ASSERT_EQ(ncclCommSplit(comms[1], 0, 0, &children[1], nullptr), ncclInProgress);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(settledStateOf(comms[r]), ncclSuccess) << lastError();
    ASSERT_NE(children[r], nullptr);
    EXPECT_EQ(stateOf(children[r]), ncclSuccess);  // it is there once the parent is done
    EXPECT_EQ(rankOf(children[r]), r);
  }
  // The configuration is taken over: the children are non-blocking, too.
  ncclComm_t grandchildren[2];
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(ncclCommSplit(children[r], r, 0, &grandchildren[r], nullptr), ncclInProgress);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(settledStateOf(children[r]), ncclSuccess) << lastError();
    for (const ncclComm_t comm : {grandchildren[r], children[r], comms[r]}) check(ncclCommDestroy(comm));
  }
}

TEST(Split, BadArgumentsAreRefused) {
  Comm comm(1, test::newId(), 0);
  ncclComm_t child = nullptr;
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommSplit(nullptr, 0, 0, &child, nullptr), "comm is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommSplit(comm.handle(), 0, 0, nullptr, nullptr),
                 "newcomm is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommSplit(comm.handle(), -2, 0, &child, nullptr), "color -2");
  ncclConfig_t zeros{};
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommSplit(comm.handle(), 0, 0, &child, &zeros),
                 "NCCL_CONFIG_INITIALIZER");
  comm.finalize();
  EXPECT_REFUSED(ncclInvalidUsage, ncclCommSplit(comm.handle(), 0, 0, &child, nullptr), "is finalized");
  EXPECT_EQ(child, nullptr);
}

TEST(Split, ARankThatLeavesInsteadIsNamed) {
  const auto errors = test::runRanks(3, [](Comm& comm) {
    comm.barrier();
    if (comm.rank() == 1) return;  // destroys it
    ncclComm_t child = nullptr;
    check(ncclCommSplit(comm.handle(), 0, 0, &child, nullptr));
  });
  for (const int rank : {0, 2}) {
    EXPECT_NE(errors[static_cast<std::size_t>(rank)].find("rank 1 (pid "), std::string::npos)
        << errors[static_cast<std::size_t>(rank)];
  }
}

TEST(Split, AbortEndsTheWait) {
  const ncclUniqueId id = test::newId();
  std::atomic<int> joined{0};
  std::atomic<bool> done{false};
  const auto errors = test::runThreads(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    check(ncclCommInitRank(&comm, 2, id, rank));
    ++joined;
    if (rank == 1) {  // never splits
      while (!done) std::this_thread::yield();
      check(ncclCommAbort(comm));
      return;
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      check(ncclCommAbort(comm));
    });
    ncclComm_t child = nullptr;
    EXPECT_NE(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclSuccess);
    EXPECT_EQ(child, nullptr);
    aborter.join();
    done = true;
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

TEST(Shrink, LeavesOutWhoIsListed) {
  EXPECT_EQ(
      test::runRanks(5,
                     [](Comm& comm) {
                       std::vector<int> excluded = {3, 0};
                       if (comm.rank() != 3 && comm.rank() != 0) {
                         ncclComm_t child = nullptr;
                         check(ncclCommShrink(comm.handle(), excluded.data(), 2, &child, nullptr,
                                              NCCL_SHRINK_DEFAULT));
                         require(membersOf(child, comm.rank()) == std::vector<int>{1, 2, 4}, "wrong members");
                         check(ncclCommDestroy(child));
                       }
                       comm.barrier();  // the parent goes on, with all
                       splitAndCheck(comm, std::vector<Wish>(5, {0, 0}));
                     }),
      test::noErrors(5));
}

TEST(Shrink, AbortEndsWhatIsUnderWay) {
  std::barrier joined(3);
  const ncclUniqueId id = test::newId();
  std::atomic<int> left{0};
  const auto errors = test::runThreads(3, [&](int rank) {
    Comm comm(3, id, rank);
    comm.barrier();
    joined.arrive_and_wait();  // nobody is inside that barrier any more
    if (rank == 1) {           // never enters, until the others are done
      while (left != 2) std::this_thread::yield();
      return;
    }
    std::atomic<bool> entered{false};
    ncclResult_t result = ncclSuccess;
    std::thread inside([&] {
      std::vector<float> data(100);
      entered = true;
      result = ncclAllReduce(data.data(), data.data(), 100, ncclFloat, ncclSum, comm.handle(), nullptr);
    });
    while (!entered) std::this_thread::yield();
    int excluded = 1;
    ncclComm_t child = nullptr;
    const ncclResult_t shrunk =
        ncclCommShrink(comm.handle(), &excluded, 1, &child, nullptr, NCCL_SHRINK_ABORT);
    inside.join();
    ++left;
    check(shrunk);
    require(result == ncclRemoteError, "the operation was not ended");
    require(membersOf(child, rank) == std::vector<int>{0, 2}, "wrong members");
    check(ncclCommDestroy(child));
    require(stateOf(comm.handle()) == ncclRemoteError, "the parent has no fault");
  });
  EXPECT_EQ(errors, test::noErrors(3));
}

TEST(Shrink, BadListsAreRefused) {
  ncclComm_t comms[3];
  check(ncclCommInitAll(comms, 3, nullptr));
  ncclComm_t child = nullptr;
  const auto shrink = [&](std::vector<int> list, int flags) {
    return ncclCommShrink(comms[1], list.data(), static_cast<int>(list.size()), &child, nullptr, flags);
  };
  EXPECT_REFUSED(ncclInvalidArgument, shrink({1}, 0), "rank 1 excludes itself");
  EXPECT_REFUSED(ncclInvalidArgument, shrink({3}, 0), "rank 3 of excludeRanksList");
  EXPECT_REFUSED(ncclInvalidArgument, shrink({-1}, 0), "rank -1");
  EXPECT_REFUSED(ncclInvalidArgument, shrink({0, 0}, 0), "rank 0 is twice");
  EXPECT_REFUSED(ncclInvalidArgument, shrink({0, 2, 1}, 0), "excludeRanksCount 3");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommShrink(comms[1], nullptr, 1, &child, nullptr, 0),
                 "excludeRanksList is NULL");
  int one = 0;
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommShrink(comms[1], &one, 0, &child, nullptr, 0),
                 "excludeRanksCount 0");
  EXPECT_REFUSED(ncclInvalidArgument, shrink({0}, 2), "shrinkFlags 0x2");
  EXPECT_EQ(stateOf(comms[1]), ncclSuccess);  // nothing was ended
  for (const ncclComm_t comm : comms) check(ncclCommDestroy(comm));
}

TEST(Revoke, EndsOperationsAndLeavesTheCommunicator) {
  std::barrier joined(3);
  const ncclUniqueId id = test::newId();
  std::atomic<int> revoked{0};
  const auto errors = test::runThreads(3, [&](int rank) {
    Comm comm(3, id, rank);
    comm.barrier();
    joined.arrive_and_wait();  // nobody is inside that barrier any more
    std::atomic<bool> entered{false};
    ncclResult_t result = ncclRemoteError;
    std::vector<float> data(100);
    std::thread inside([&] {
      entered = true;
      if (rank != 2) {
        result = ncclAllReduce(data.data(), data.data(), 100, ncclFloat, ncclSum, comm.handle(), nullptr);
      }
    });
    while (!entered) std::this_thread::yield();
    const ncclResult_t outcome = ncclCommRevoke(comm.handle(), NCCL_REVOKE_DEFAULT);
    inside.join();
    check(outcome);
    // Ended by this rank's revocation or another's; one that came too late was refused.
    require(result == ncclRemoteError || result == ncclInvalidUsage, "the operation was not ended");
    require(stateOf(comm.handle()) == ncclSuccess, "not quiet");
    ++revoked;
    while (revoked != 3) std::this_thread::yield();
    require(ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, comm.handle(), nullptr) ==
                ncclInvalidUsage,
            "an operation after ncclCommRevoke");
    require(ncclCommFinalize(comm.handle()) == ncclInvalidUsage, "ncclCommFinalize after ncclCommRevoke");
    require(ncclCommRevoke(comm.handle(), 0) == ncclInvalidArgument, "revoked twice");
    splitAndCheck(comm, {{0, 0}, {1, 0}, {0, 0}});
  });
  EXPECT_EQ(errors, test::noErrors(3));
}

TEST(Revoke, BadArgumentsAreRefused) {
  Comm comm(1, test::newId(), 0);
  EXPECT_EQ(ncclCommRevoke(nullptr, 0), ncclSuccess);
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommRevoke(comm.handle(), 1), "revokeFlags 0x1");
  float value = 1;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm.handle(), nullptr), ncclSuccess);
}

}  // namespace
}  // namespace tutti
