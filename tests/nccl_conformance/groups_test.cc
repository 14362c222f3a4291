// Groups: nested, over several communicators, of collectives and transfers, with errors in them.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/nccl_conformance/checked_call.h"

namespace conformance {
namespace {

constexpr Call sumOf(std::size_t count) { return {.type = &kTypes[7], .count = count}; }

class Groups : public PerRanks {};

TEST_P(Groups, NothingIsDoneBeforeTheOutermostEnds) {
  runRanks(GetParam(), [](const Rank& r) {
    CheckedCall first(sumOf(50), 1, r.rank, r.nranks);
    CheckedCall second({.collective = Collective::all_gather, .type = &kTypes[1], .count = 9}, 2, r.rank,
                       r.nranks);
    Group outer;
    {
      Group inner;
      first.issue(r.comm, r.stream);
      Group innermost;
      innermost.end();
      inner.end();
    }
    second.issue(r.comm, r.stream);
    r.stream.synchronize();
    first.verifyUntouched();
    second.verifyUntouched();
    outer.end();
    r.stream.synchronize();
    first.verify();
    second.verify();
  });
}

TEST_P(Groups, Empty) {
  runRanks(GetParam(), [](const Rank& r) {
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclGroupEnd());
    checkUsable(r);
  });
}

/// One thread is all ranks.
TEST_P(Groups, OneThreadDrivesAllRanks) {
  const int nranks = GetParam();
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(nranks));
  CHECK_NCCL(ncclCommInitAll(comms.data(), nranks, nullptr));
  std::vector<Stream> streams;
  for (int rank = 0; rank < nranks; ++rank) {
    takeDevice(rank);
    streams.emplace_back();
  }
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast}) {
    const Call call{.collective = collective, .type = &kTypes[4], .root = nranks - 1, .count = 33};
    std::vector<CheckedCall> calls;
    calls.reserve(comms.size());
    for (int rank = 0; rank < nranks; ++rank) {
      takeDevice(rank);
      calls.emplace_back(call, 1, rank, nranks);
    }
    Group group;
    for (std::size_t i = 0; i < comms.size(); ++i) calls[i].issue(comms[i], streams[i]);
    group.end();
    for (std::size_t i = 0; i < comms.size(); ++i) {
      streams[i].synchronize();
      calls[i].verify();
    }
  }
  CHECK_NCCL(ncclGroupStart());
  for (const ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_NCCL(ncclGroupEnd());
}

/// One thread joins as all ranks.
TEST_P(Groups, OneThreadMakesAllRanks) {
  const int nranks = GetParam();
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(nranks));
  Group group;
  for (int rank = 0; rank < nranks; ++rank) {
    takeDevice(rank);
    CHECK_NCCL(ncclCommInitRank(&comms[static_cast<std::size_t>(rank)], nranks, id, rank));
  }
  group.end();
  for (int rank = 0; rank < nranks; ++rank) {
    int said = -1;
    CHECK_NCCL(ncclCommUserRank(comms[static_cast<std::size_t>(rank)], &said));
    EXPECT_EQ(said, rank);
  }
  for (const ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
}

/// Two communicators of the same ranks, in the second numbered backwards; collectives and transfers of both
/// in one group, which every second rank posts in the opposite order.
TEST_P(Groups, SeveralCommunicators) {
  const ncclUniqueId other_id = newId();
  runRanks(GetParam(), [&](const Rank& r) {
    const int other_rank = r.nranks - 1 - r.rank;
    ncclComm_t other = nullptr;
    CHECK_NCCL(ncclCommInitRank(&other, r.nranks, other_id, other_rank));
    CheckedCall sum(sumOf(70), 1, r.rank, r.nranks);
    CheckedCall gather({.collective = Collective::all_gather, .type = &kTypes[7], .count = 20}, 2, other_rank,
                       r.nranks);
    CheckedCall broadcast({.collective = Collective::broadcast, .type = &kTypes[2], .count = 11}, 3, r.rank,
                          r.nranks);
    const std::int64_t told = 100 + r.rank;
    const Buffer words(2 * sizeof(told));
    copyIn(words.at(), &told, sizeof(told));
    const auto transfers = [&] {
      CHECK_NCCL(ncclSend(words.at(), 1, ncclInt64, (other_rank + 1) % r.nranks, other, r.stream));
      CHECK_NCCL(ncclRecv(words.at(sizeof(told)), 1, ncclInt64, (other_rank + r.nranks - 1) % r.nranks, other,
                          r.stream));
    };
    Group group;
    if (r.rank % 2 != 0) transfers();
    sum.issue(r.comm, r.stream);
    gather.issue(other, r.stream);
    broadcast.issue(r.comm, r.stream);
    if (r.rank % 2 == 0) transfers();
    group.end();
    r.stream.synchronize();
    sum.verify();
    gather.verify();
    broadcast.verify();
    std::int64_t heard = 0;
    copyOut(&heard, words.at(sizeof(told)), sizeof(heard));
    EXPECT_EQ(heard, 100 + (r.rank + 1) % r.nranks);
    CHECK_NCCL(ncclCommDestroy(other));
  });
}

/// The call says so at once, the group in the end; nothing of it is done, and the communicator works.
TEST_P(Groups, ARefusedCallRefusesTheGroup) {
  runRanks(GetParam(), [](const Rank& r) {
    CheckedCall good(sumOf(10), 1, r.rank, r.nranks);
    const Buffer data(64);
    CHECK_NCCL(ncclGroupStart());
    good.issue(r.comm, r.stream);
    EXPECT_EQ(ncclBroadcast(data.at(), data.at(), 1, ncclInt32, r.nranks, r.comm, r.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    r.stream.synchronize();
    good.verifyUntouched();
    checkUsable(r);
  });
}

TEST_P(Groups, EndWithoutStart) {
  runRanks(GetParam(), [](const Rank& r) {
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    checkUsable(r);
  });
}

/// Says a time, or that it knows none; does nothing.
TEST_P(Groups, Simulated) {
  runRanks(GetParam(), [](const Rank& r) {
    CheckedCall call(sumOf(1000), 1, r.rank, r.nranks);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    CHECK_NCCL(ncclGroupStart());
    call.issue(r.comm, r.stream);
    CHECK_NCCL(ncclGroupSimulateEnd(&info));
    EXPECT_TRUE(info.estimatedTime > 0 || info.estimatedTime == NCCL_UNDEF_FLOAT) << info.estimatedTime;
    r.stream.synchronize();
    call.verifyUntouched();
    checkUsable(r);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Groups, testing::Values(1, 2, 4));

}  // namespace
}  // namespace conformance
