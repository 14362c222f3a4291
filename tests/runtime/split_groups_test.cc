// Splits inside groups: what else the group may hold, and in which order it is done.
#include <gtest/gtest.h>

#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"

namespace tutti {
namespace {

using test::settledStateOf;
using test::stateOf;

/// Two ranks of this thread.
class SplitGroups : public testing::Test {
 protected:
  void SetUp() override {
    const ncclUniqueId id = test::newId();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    for (int r = 0; r < 2; ++r) {
      ASSERT_EQ(ncclCommInitRankConfig(&comms_[r], 2, id, r, &config), ncclInProgress);
    }
    for (const ncclComm_t comm : comms_) ASSERT_EQ(settledStateOf(comm), ncclSuccess) << test::lastError();
  }

  static void checkAndDestroy(const ncclComm_t (&comms)[2]) {
    float values[2] = {1, 2};
    check(ncclGroupStart());
    for (int r = 0; r < 2; ++r) {
      check(ncclAllReduce(&values[r], &values[r], 1, ncclFloat, ncclSum, comms[r], nullptr));
    }
    check(ncclGroupEnd());
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(values[r], 3);
      check(ncclCommDestroy(comms[r]));
    }
  }

  ncclComm_t comms_[2]{};
  ncclComm_t children_[2]{};
};

/// Many times: it must not depend on which thread is faster.
TEST_F(SplitGroups, InTheBackgroundTheSplitIsDoneAndThenTheParentEnds) {
  for (int round = 0; round < 25; ++round) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(ncclCommSplit(comms_[r], 0, 0, &children_[r], nullptr), ncclSuccess);
      if (round % 2 == 1) {
        EXPECT_EQ(ncclCommFinalize(comms_[r]), ncclSuccess);
      }
      EXPECT_EQ(ncclCommDestroy(comms_[r]), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclInProgress) << test::lastError();
    for (int r = 0; r < 2; ++r) {
      ncclResult_t state = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(comms_[r], &state), ncclInvalidArgument) << "the handle is gone";
      EXPECT_EQ(settledStateOf(children_[r]), ncclSuccess) << test::lastError();
      comms_[r] = children_[r];
    }
  }
  checkAndDestroy(comms_);
}

TEST_F(SplitGroups, InTheBackgroundTheParentIsFinalizedAfterTheSplit) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(ncclCommFinalize(comms_[r]), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(comms_[r], 0, 0, &children_[r], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclInProgress) << test::lastError();
  for (const ncclComm_t comm : comms_) {
    EXPECT_EQ(settledStateOf(comm), ncclSuccess) << test::lastError();
    float value = 0;
    EXPECT_REFUSED(ncclInvalidUsage, ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr),
                   "after ncclCommFinalize");
    check(ncclCommDestroy(comm));
  }
  checkAndDestroy(children_);
}

/// Nobody else splits: the handle is gone at once, and what it stands for when the split has ended.
TEST_F(SplitGroups, DestroyDoesNotWaitForASplitInTheBackground) {
  ASSERT_EQ(ncclCommSplit(comms_[0], 0, 0, &children_[0], nullptr), ncclInProgress);
  EXPECT_EQ(ncclCommDestroy(comms_[0]), ncclSuccess) << test::lastError();
  EXPECT_EQ(stateOf(children_[0]), ncclInProgress);
  ASSERT_EQ(ncclCommSplit(comms_[1], 0, 0, &children_[1], nullptr), ncclInProgress);
  for (const ncclComm_t child : children_) EXPECT_EQ(settledStateOf(child), ncclSuccess) << test::lastError();
  EXPECT_EQ(settledStateOf(comms_[1]), ncclSuccess) << test::lastError();
  check(ncclCommDestroy(comms_[1]));
  checkAndDestroy(children_);
}

TEST_F(SplitGroups, OnlyOneOfACommunicatorIsAccepted) {
  int excluded = 1;
  ncclComm_t other = nullptr;
  for (const bool shrinks : {false, true}) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(comms_[0], 0, 0, &children_[0], nullptr), ncclSuccess);
    if (shrinks) {
      EXPECT_REFUSED(ncclInvalidUsage,
                     ncclCommShrink(comms_[0], &excluded, 1, &other, nullptr, NCCL_SHRINK_ABORT),
                     "One split of a communicator at a time");
    } else {
      EXPECT_REFUSED(ncclInvalidUsage, ncclCommSplit(comms_[0], 0, 0, &other, nullptr),
                     "One split of a communicator at a time");
    }
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_EQ(children_[0], nullptr);
    EXPECT_EQ(other, nullptr);
  }
  checkAndDestroy(comms_);  // nothing was ended
}

}  // namespace
}  // namespace tutti
