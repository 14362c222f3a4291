// Communicators made of others: split and shrunk.
#include <gtest/gtest.h>

#include <vector>

#include "tests/nccl_conformance/checked_call.h"

namespace conformance {
namespace {

/// The same thread as a rank of the child.
Rank rankOf(ncclComm_t comm, const Stream& stream) {
  Rank result{-1, -1, comm, stream};
  CHECK_NCCL(ncclCommCount(comm, &result.nranks));
  CHECK_NCCL(ncclCommUserRank(comm, &result.rank));
  return result;
}

class Split : public PerRanks {};

TEST_P(Split, ByColourAndKey) {
  std::barrier meeting(GetParam());
  runRanks(GetParam(), [&](const Rank& r) {
    Attendee attendee(meeting);
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommSplit(r.comm, r.rank % 2, -r.rank, &child, nullptr));
    const Rank mine = rankOf(child, r.stream);
    EXPECT_EQ(mine.nranks, (r.nranks + 1 - r.rank % 2) / 2);
    EXPECT_EQ(mine.rank, mine.nranks - 1 - r.rank / 2) << "keys run backwards";
    checkUsable(mine, 1);
    checkUsable(r, 2);
    checkUsable(mine, 3);
    CHECK_NCCL(ncclCommDestroy(child));
    attendee.meet();
    checkUsable(r, 4);
  });
}

TEST_P(Split, EqualKeysKeepTheOrder) {
  runRanks(GetParam(), [](const Rank& r) {
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommSplit(r.comm, 7, 0, &child, nullptr));
    const Rank mine = rankOf(child, r.stream);
    EXPECT_EQ(mine.nranks, r.nranks);
    EXPECT_EQ(mine.rank, r.rank);
    CHECK_NCCL(ncclCommDestroy(child));
  });
}

TEST_P(Split, WithoutColourThereIsNone) {
  std::barrier meeting(GetParam());
  runRanks(GetParam(), [&](const Rank& r) {
    Attendee attendee(meeting);
    ncclComm_t child = r.comm;  // to be overwritten
    const bool stays = r.rank == r.nranks - 1;
    CHECK_NCCL(ncclCommSplit(r.comm, stays ? 0 : NCCL_SPLIT_NOCOLOR, 0, &child, nullptr));
    if (stays) {
      EXPECT_EQ(rankOf(child, r.stream).nranks, 1);
      checkUsable(rankOf(child, r.stream));
      CHECK_NCCL(ncclCommDestroy(child));
    } else {
      EXPECT_EQ(child, nullptr);
    }
    attendee.meet();
    checkUsable(r);
  });
}

TEST_P(Split, OfASplitWhoseParentIsGone) {
  const ncclUniqueId id = newId();
  std::barrier meeting(GetParam());
  runThreads(GetParam(), [&](int rank) {
    Attendee attendee(meeting);
    const Stream stream;
    ncclComm_t parent = nullptr;
    ncclComm_t child = nullptr;
    ncclComm_t grandchild = nullptr;
    CHECK_NCCL(ncclCommInitRank(&parent, GetParam(), id, rank));
    CHECK_NCCL(ncclCommSplit(parent, 0, -rank, &child, nullptr));
    CHECK_NCCL(ncclCommDestroy(parent));
    attendee.meet();
    checkUsable(rankOf(child, stream));
    CHECK_NCCL(ncclCommSplit(child, rank / 2, 0, &grandchild, nullptr));
    CHECK_NCCL(ncclCommDestroy(child));
    attendee.meet();
    checkUsable(rankOf(grandchild, stream));
    CHECK_NCCL(ncclCommDestroy(grandchild));
  });
}

/// The first rank is left out, and does not take part.
TEST_P(Split, Shrunk) {
  if (GetParam() == 1) GTEST_SKIP() << "nobody would stay";
  runRanks(GetParam(), [](const Rank& r) {
    if (r.rank == 0) return;
    int excluded = 0;
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommShrink(r.comm, &excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
    const Rank mine = rankOf(child, r.stream);
    EXPECT_EQ(mine.nranks, r.nranks - 1);
    EXPECT_EQ(mine.rank, r.rank - 1);
    checkUsable(mine);
    CHECK_NCCL(ncclCommDestroy(child));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Split, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace conformance
