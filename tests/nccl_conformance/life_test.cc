// Communicators: made, asked, finalized, destroyed and aborted, in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/nccl_conformance/checked_call.h"

namespace conformance {
namespace {

/// Waits until the communicator is in progress no more.
ncclResult_t settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    std::this_thread::yield();
  }
  return state;
}

/// For calls that may go on in the background.
void checkBackground(ncclResult_t result, const ncclComm_t& comm, const char* call) {
  check(result == ncclInProgress ? settle(comm) : result, call);
}

std::vector<ncclComm_t> makeAll(int nranks) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(nranks));
  CHECK_NCCL(ncclCommInitAll(comms.data(), nranks, nullptr));
  return comms;
}

class Life : public PerRanks {};

TEST_P(Life, SaysWhatItIs) {
  runRanks(GetParam(), [](const Rank& r) {
    int count = -1;
    int rank = -1;
    int device = -1;
    ncclResult_t state = ncclInternalError;
    CHECK_NCCL(ncclCommCount(r.comm, &count));
    CHECK_NCCL(ncclCommUserRank(r.comm, &rank));
    CHECK_NCCL(ncclCommCuDevice(r.comm, &device));
    CHECK_NCCL(ncclCommGetAsyncError(r.comm, &state));
    EXPECT_EQ(count, r.nranks);
    EXPECT_EQ(rank, r.rank);
    EXPECT_GE(device, 0);
    EXPECT_EQ(state, ncclSuccess);
  });
}

TEST_P(Life, DestroyedInAnyOrder) {
  for (const int start : {0, GetParam() / 2, GetParam() - 1}) {
    const auto comms = makeAll(GetParam());
    for (int i = 0; i < GetParam(); ++i) {
      const int rank = (start + (start == 0 ? i : GetParam() - i)) % GetParam();
      CHECK_NCCL(ncclCommDestroy(comms[static_cast<std::size_t>(rank)]));
    }
  }
}

/// Whoever ends first does not end the others' work.
TEST_P(Life, DestroyedWhileOthersStillWait) {
  const ncclUniqueId id = newId();
  runThreads(GetParam(), [&](int rank) {
    ncclComm_t comm = nullptr;
    CHECK_NCCL(ncclCommInitRank(&comm, GetParam(), id, rank));
    {
      const Stream stream;
      for (std::uint64_t seed = 1; seed <= 5; ++seed) checkUsable({rank, GetParam(), comm, stream}, seed);
    }
    CHECK_NCCL(ncclCommDestroy(comm));
  });
}

TEST_P(Life, OneAfterAnother) {
  for (int i = 0; i < (isSlow() ? 2 : 10); ++i) runRanks(GetParam(), [](const Rank& r) { checkUsable(r); });
}

TEST_P(Life, FinalizedThenDestroyed) {
  const ncclUniqueId id = newId();
  runThreads(GetParam(), [&](int rank) {
    ncclComm_t comm = nullptr;
    CHECK_NCCL(ncclCommInitRank(&comm, GetParam(), id, rank));
    {
      const Stream stream;
      CheckedCall call({.type = &kTypes[0], .count = 30}, 1, rank, GetParam());
      call.issue(comm, stream);
      CHECK_NCCL(ncclCommFinalize(comm));
      stream.synchronize();
      call.verify();
      EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument) << "a second time";
      const Buffer data(64);
      if (isTutti()) {
        EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 1, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage);
      }
    }
    CHECK_NCCL(ncclCommDestroy(comm));
  });
}

ncclComm_t madeInBackground(int nranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  checkBackground(ncclCommInitRankConfig(&comm, nranks, id, rank, &config), comm, "ncclCommInitRankConfig");
  return comm;
}

TEST_P(Life, MadeAndEndedInTheBackground) {
  const ncclUniqueId id = newId();
  runThreads(GetParam(), [&](int rank) {
    ncclComm_t comm = madeInBackground(GetParam(), id, rank);
    {
      const Stream stream;
      const Call sum{.type = &kTypes[6], .count = 40};
      const Buffer data(sum.count * sum.type->bytes);
      std::vector<std::byte> values(sum.count * sum.type->bytes);
      for (std::size_t i = 0; i < sum.count; ++i)
        encode(*sum.type, values.data() + i * sum.type->bytes, inputValue(sum, 1, rank, i));
      copyIn(data.at(), values.data(), values.size());
      checkBackground(issue(sum, ncclSum, data.at(), data.at(), comm, stream), comm, "ncclAllReduce");
      stream.synchronize();
      copyOut(values.data(), data.at(), values.size());
      for (std::size_t i = 0; i < sum.count; ++i) {
        EXPECT_EQ(decode(*sum.type, values.data() + i * sum.type->bytes),
                  reducedValue(sum, 1, GetParam(), i));
      }
    }
    checkBackground(ncclCommFinalize(comm), comm, "ncclCommFinalize");
    CHECK_NCCL(ncclCommDestroy(comm));
  });
}

/// In one group: the child is made, then the parent ends.
TEST_P(Life, SplitAndDestroyedInOneGroup) {
  if (!isTutti()) GTEST_SKIP() << "NCCL does both at once";
  const ncclUniqueId id = newId();
  runThreads(GetParam(), [&](int rank) {
    ncclComm_t comm = madeInBackground(GetParam(), id, rank);
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclCommSplit(comm, 0, 0, &child, nullptr));
    CHECK_NCCL(ncclCommDestroy(comm));
    checkBackground(ncclGroupEnd(), child, "ncclGroupEnd");
    int count = 0;
    CHECK_NCCL(ncclCommCount(child, &count));
    EXPECT_EQ(count, GetParam());
    CHECK_NCCL(ncclCommDestroy(child));
  });
}

/// Nobody comes; the one that waits is let go.
TEST(LifeOfOne, AbortedWhileItIsMade) {
  if (mostRanks() < 2) GTEST_SKIP() << "needs two ranks";
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, 2, newId(), 0, &config);
  EXPECT_TRUE(result == ncclInProgress || result == ncclSuccess) << ncclGetLastError(nullptr);
  ncclResult_t state = ncclSuccess;
  CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
  EXPECT_EQ(state, ncclInProgress);
  int count = 0;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
  CHECK_NCCL(ncclCommAbort(comm));
}

/// Rank 0 stays away from a sum and aborts, as all others do from a second thread. On host memory the call
/// waits, on a GPU the stream.
TEST_P(Life, AbortedInsideAnOperation) {
  if (GetParam() == 1) GTEST_SKIP() << "nobody to wait for";
  const ncclUniqueId id = newId();
  runThreads(GetParam(), [&](int rank) {
    ncclComm_t comm = nullptr;
    CHECK_NCCL(ncclCommInitRank(&comm, GetParam(), id, rank));
    std::atomic<bool> is_inside{rank == 0};
    std::thread waiting([&] {
      if (rank == 0) return;
      takeDevice(rank);
      const Stream stream;
      const Buffer data(4096);
      const bool call_waits = stream == nullptr;
      if (call_waits) is_inside = true;
      const ncclResult_t result = ncclAllReduce(data.at(), data.at(), 1024, ncclInt32, ncclSum, comm, stream);
      EXPECT_NE(call_waits ? result : ncclRemoteError, ncclSuccess);
      is_inside = true;
      stream.synchronize();
    });
    while (!is_inside) std::this_thread::yield();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    waiting.join();
  });
}

TEST_P(Life, AnEndedHandleIsRefused) {
  if (!isTutti()) GTEST_SKIP() << "NCCL looks into memory that it has freed";
  const auto comms = makeAll(GetParam());
  for (const ncclComm_t comm : comms) CHECK_NCCL(ncclCommAbort(comm));
  for (const ncclComm_t comm : comms) {
    int count = 0;
    EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
    EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument);
    EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Life, testing::Values(1, 2, 3, 4));

TEST(LifeOfOne, NoCommunicatorEndsWell) {
  CHECK_NCCL(ncclCommDestroy(nullptr));
  CHECK_NCCL(ncclCommFinalize(nullptr));
  CHECK_NCCL(ncclCommAbort(nullptr));
}

TEST(LifeOfOne, SeveralAtOnce) {
  std::vector<std::vector<ncclComm_t>> all;
  const int nranks = std::min(2, mostRanks());
  all.reserve(5);
  for (int i = 0; i < 5; ++i) all.push_back(makeAll(nranks));
  for (const auto& comms : all) {
    for (const ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
  }
}

}  // namespace
}  // namespace conformance
