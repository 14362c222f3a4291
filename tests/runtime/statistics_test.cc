// tuttiCommStatistics against the sums that the algorithms' definitions give.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/harness/ranks.h"
#include "tutti/tutti.h"

namespace {

using tutti::Comm;
using tutti::test::noErrors;
using tutti::test::runRanks;

std::uint64_t payload(const tuttiStatistics_t& s) {
  return s.payload_slot_bytes + s.payload_read_bytes + s.payload_written_bytes;
}

/// Payload summed over ranks of one call of `body`, after a first call.
std::uint64_t payloadOverRanks(int nranks, const std::function<void(Comm&)>& body) {
  std::vector<std::uint64_t> of_rank(static_cast<std::size_t>(nranks));
  EXPECT_EQ(runRanks(nranks,
                     [&](Comm& comm) {
                       body(comm);
                       const tuttiStatistics_t before = comm.statistics();
                       body(comm);
                       const tuttiStatistics_t after = comm.statistics();
                       of_rank[static_cast<std::size_t>(comm.rank())] = payload(after) - payload(before);
                     }),
            noErrors(nranks));
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : of_rank) sum += bytes;
  return sum;
}

/// Small messages would go to everybody at once; the definitions below are those of algorithms that do not.
const bool kDirect = ::setenv("TUTTI_PLAN", "direct/slots", 1) == 0;

// One element, fewer than ranks, odd, a prime, and more than all slots of a link hold.
const std::vector<std::uint64_t> kCounts{1, 3, 1000, 7919, 1'500'001};

TEST(Statistics, PayloadOfEachCollectiveIsWhatItsDefinitionMoves) {
  ASSERT_TRUE(kDirect);
  for (const int nranks : {1, 2, 3, 4, 5}) {
    for (const std::uint64_t count : kCounts) {
      SCOPED_TRACE(testing::Message() << nranks << " ranks, " << count << " elements");
      const auto n = static_cast<std::uint64_t>(nranks);
      const std::uint64_t bytes = count * sizeof(float);
      // Every block is passed on n - 1 times to be reduced, and n - 1 times as a result.
      EXPECT_EQ(payloadOverRanks(nranks,
                                 [&](Comm& comm) {
                                   std::vector<float> data(count);
                                   comm.allReduce(data.data(), data.data(), count, ncclSum);
                                 }),
                2 * (n - 1) * bytes);
      // Every contribution reaches n - 1 others.
      EXPECT_EQ(payloadOverRanks(nranks,
                                 [&](Comm& comm) {
                                   const std::vector<float> own(count);
                                   std::vector<float> all(count * n);
                                   comm.allGather(own.data(), all.data(), count);
                                 }),
                n * (n - 1) * bytes);
      EXPECT_EQ(payloadOverRanks(nranks,
                                 [&](Comm& comm) {
                                   std::vector<float> data(count);
                                   comm.broadcast(data.data(), data.data(), count, ncclFloat32, nranks - 1);
                                 }),
                (n - 1) * bytes);
    }
  }
}

TEST(Statistics, CountsStartAtZeroAndLeaveOutEmptyAndRefusedCalls) {
  EXPECT_EQ(runRanks(3,
                     [](Comm& comm) {
                       std::vector<float> data(8);
                       const tuttiStatistics_t start = comm.statistics();
                       EXPECT_EQ(start.operations, 0U);
                       EXPECT_EQ(start.slots_posted, 0U);
                       EXPECT_EQ(payload(start), 0U);
                       comm.allReduce(data.data(), data.data(), 0, ncclSum);
                       EXPECT_EQ(comm.statistics().operations, 0U);
                       EXPECT_THROW(comm.allReduce<float>(nullptr, data.data(), 8, ncclSum), tutti::Error);
                       EXPECT_EQ(comm.statistics().operations, 0U);
                       comm.allReduce(data.data(), data.data(), 8, ncclSum);
                       EXPECT_EQ(comm.statistics().operations, 1U);
                       EXPECT_EQ(comm.statistics().reserved[0], 0U);
                     }),
            noErrors(3));
}

TEST(Statistics, NullAndDeadHandlesAreRefused) {
  tuttiStatistics_t statistics;
  EXPECT_EQ(tuttiCommStatistics(nullptr, &statistics), ncclInvalidArgument);
  ncclComm_t comm = nullptr;
  tutti::check(ncclCommInitRank(&comm, 1, tutti::test::newId(), 0));
  EXPECT_EQ(tuttiCommStatistics(comm, nullptr), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("statistics is NULL"), std::string::npos);
  EXPECT_EQ(tuttiCommStatistics(comm, &statistics), ncclSuccess);
  tutti::check(ncclCommDestroy(comm));
  EXPECT_EQ(tuttiCommStatistics(comm, &statistics), ncclInvalidArgument);
}

}  // namespace
