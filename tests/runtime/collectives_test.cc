// Collectives with ranks as threads, against the oracle.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/ranks.h"

namespace tutti {
namespace {

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, Conform) {
  const int nranks = GetParam();
  const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(nranks);
  EXPECT_EQ(test::runRanks(nranks, [&](Comm& comm) { test::conform(comm, seed, 150, 5000); }),
            test::noErrors(nranks));
}

TEST_P(Ranks, ConformOnDataOfManySlots) {
  const int nranks = GetParam();
  const std::uint64_t seed = 2000 + static_cast<std::uint64_t>(nranks);
  EXPECT_EQ(test::runRanks(nranks, [&](Comm& comm) { test::conform(comm, seed, 4, 400'000); }),
            test::noErrors(nranks));
}

INSTANTIATE_TEST_SUITE_P(OneToNine, Ranks, testing::Range(1, 10));

TEST(Collectives, SixtyFourRanks) {
  EXPECT_EQ(test::runRanks(64, [](Comm& comm) { test::conform(comm, 64, 8, 3000); }), test::noErrors(64));
}

TEST(Collectives, LargerThanTheCaches) {
  // Results are written past the caches, into the memory of the other rank.
  EXPECT_EQ(
      test::runRanks(2,
                     [](Comm& comm) {
                       for (const Collective collective : {Collective::all_reduce, Collective::all_gather}) {
                         const Descriptor d{.collective = collective, .count = 9'000'001};
                         test::checkOperation(comm, d, 12, {});
                       }
                     }),
      test::noErrors(2));
}

/// Sums whose bits depend on the order of summation, averaged by 5 ranks: each rank's result, as bits.
std::vector<std::vector<std::uint32_t>> averageBits() {
  constexpr int kRanks = 5;
  constexpr std::size_t kCount = 10'007;
  std::vector<std::vector<std::uint32_t>> results(kRanks, std::vector<std::uint32_t>(kCount));
  const auto average = [&](Comm& comm) {
    std::mt19937 random(static_cast<unsigned>(comm.rank()));
    std::vector<float> mine(kCount);
    for (float& value : mine) {
      value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 50);
    }
    void* result = results[static_cast<std::size_t>(comm.rank())].data();
    comm.allReduce(mine.data(), result, kCount, ncclFloat32, ncclAvg);
  };
  EXPECT_EQ(test::runRanks(kRanks, average), test::noErrors(kRanks));
  return results;
}

TEST(Collectives, AllRanksEndWithTheSameBitsAndSoDoesASecondRun) {
  const auto results = averageBits();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_EQ(averageBits(), results);
}

TEST(Collectives, SeveralCommunicatorsAtOnce) {
  const ncclUniqueId first = test::newId();
  const ncclUniqueId second = test::newId();
  EXPECT_EQ(test::runThreads(3,
                             [&](int rank) {
                               Comm a(3, first, rank);
                               Comm b(3, second, 2 - rank);
                               for (int i = 0; i < 20; ++i) {
                                 test::conform(a, 7, 2, 500);
                                 test::conform(b, 8, 2, 500);
                               }
                             }),
            test::noErrors(3));
}

TEST(Collectives, RootLeavingEarlyDoesNotHurtTheOthers) {
  // The root of a broadcast owes nothing once it has posted: it may destroy its communicator and go.
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(test::runRanks(3,
                             [](Comm& comm) {
                               std::vector<std::int32_t> data(1000, comm.rank() == 0 ? 42 : 0);
                               if (comm.rank() == 2)
                                 std::this_thread::sleep_for(std::chrono::milliseconds(30));
                               comm.broadcast(data.data(), data.data(), data.size(), ncclInt32, 0);
                               if (data.back() != 42) throw std::runtime_error("wrong data");
                             }),
              test::noErrors(3));
  }
}

}  // namespace
}  // namespace tutti
