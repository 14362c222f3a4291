// tuttiCommStatistics against the sums that the algorithms' definitions give.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/rank_group.h"
#include "tests/harness/ranks.h"
#include "tutti/tutti.h"

namespace {

using tutti::Comm;
using tutti::test::expectSuccess;
using tutti::test::noErrors;
using tutti::test::RankGroup;
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
                       EXPECT_EQ(start.payload_network_bytes, 0U);
                       comm.allReduce(data.data(), data.data(), 0, ncclSum);
                       EXPECT_EQ(comm.statistics().operations, 0U);
                       EXPECT_THROW(comm.allReduce<float>(nullptr, data.data(), 8, ncclSum), tutti::Error);
                       EXPECT_EQ(comm.statistics().operations, 0U);
                       comm.allReduce(data.data(), data.data(), 8, ncclSum);
                       EXPECT_EQ(comm.statistics().operations, 1U);
                       EXPECT_EQ(comm.statistics().payload_network_bytes, 0U) << "on one host";
                       EXPECT_EQ(comm.statistics().reserved[0], 0U);
                     }),
            noErrors(3));
}

/// What an operation moved over all ranks, and of that between hosts.
struct Moved {
  std::uint64_t payload = 0;
  std::uint64_t network = 0;

  bool operator==(const Moved&) const = default;
};

void PrintTo(const Moved& moved, std::ostream* out) {
  *out << moved.payload << " bytes, " << moved.network << " of them between hosts";
}

/// By operation and count; from "moved NAME COUNT PAYLOAD NETWORK" of every rank of rank_program.
using MovedByOperation = std::map<std::pair<std::string, std::uint64_t>, Moved>;

MovedByOperation movedBy(int nranks, int hosts, const tutti::test::Environment& environment) {
  RankGroup group(nranks, {"moved"}, environment, {}, hosts);
  const auto results = group.wait();
  expectSuccess(results);
  MovedByOperation sums;
  for (const auto& result : results) {
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string kind;
      std::string name;
      std::uint64_t count = 0;
      Moved moved;
      if (!(words >> kind >> name >> count >> moved.payload >> moved.network)) continue;
      Moved& sum = sums[{name, count}];
      sum.payload += moved.payload;
      sum.network += moved.network;
    }
  }
  return sums;
}

/// h hosts of m ranks each, hosts hold consecutive ranks, rank 0 is root: what is moved for `bytes` of the
/// buffer, or of one rank's block.
Moved expectedOf(const std::string& plan, const std::string& operation, std::uint64_t h, std::uint64_t m,
                 std::uint64_t bytes) {
  const std::uint64_t n = h * m;
  if (operation == "send") return {bytes, h > 1 ? bytes : 0};
  if (operation == "all_reduce") {
    // Of a ring's n links h join hosts; each carries 2 (n - 1) of n blocks.
    if (plan == "ring") return {2 * (n - 1) * bytes, h > 1 ? 2 * (n - 1) * h * (bytes / n) : 0};
    if (plan == "one_shot") return {n * (n - 1) * bytes, n * (n - m) * bytes};
    // Each of m parts is passed round h hosts: h - 1 sums, h - 1 results.
    if (plan == "hierarchical" && h > 1) return {2 * (n - 1) * bytes, 2 * (h - 1) * bytes};
    return {2 * (n - 1) * bytes, 2 * (n - m) * bytes};
  }
  if (operation == "all_gather" || operation == "reduce_scatter") {
    if (plan == "ring") return {n * (n - 1) * bytes, h > 1 ? h * (n - 1) * bytes : 0};
    return {n * (n - 1) * bytes, n * (n - m) * bytes};
  }
  // Of a ring's links the chains leave out one: broadcast that to the root, which comes from another host,
  // reduce that from the root, which goes to one only where each rank is alone on its host.
  if (plan == "ring") {
    const bool stays_inside = operation == "reduce" && m > 1;
    return {(n - 1) * bytes, h > 1 ? (stays_inside ? h : h - 1) * bytes : 0};
  }
  if (operation == "broadcast") return {(n - 1) * bytes, (n - m) * bytes};
  if (plan == "one_shot") return {(n - 1) * bytes, (n - m) * bytes};
  // Directly: every rank gets its part of n - 1 others, and gives one result to the root.
  const std::uint64_t part = bytes / n;
  return {n * (n - 1) * part + (n - 1) * part, n * (n - m) * part + (n - m) * part};
}

struct Arrangement {
  int nranks;
  int hosts;
};

/// Large data goes between hosts by reference on the side of its sender, small data does not.
TEST(Statistics, EveryByteIsCountedOnceWhateverTheMedium) {
  for (const std::string plan : {"ring", "direct", "one_shot", "hierarchical"}) {
    for (const auto& [nranks, hosts] :
         {Arrangement{2, 2}, Arrangement{4, 2}, Arrangement{4, 1}, Arrangement{6, 3}, Arrangement{3, 3}}) {
      const auto sums = movedBy(nranks, hosts, {{"TUTTI_PLAN", plan}, {"TUTTI_SLOT_BYTES", "131072"}});
      EXPECT_EQ(sums.size(), 18U);
      const auto h = static_cast<std::uint64_t>(hosts);
      for (const auto& [what, moved] : sums) {
        const auto& [operation, count] = what;
        // The library chooses by itself what hierarchical does not have.
        if (plan == "hierarchical" && (operation != "all_reduce" || hosts == 1)) continue;
        EXPECT_EQ(moved, expectedOf(plan, operation, h, static_cast<std::uint64_t>(nranks) / h,
                                    count * sizeof(float)))
            << plan << " " << operation << " of " << count << ", " << nranks << " ranks on " << hosts;
      }
    }
  }
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
