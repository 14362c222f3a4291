// ncclAlltoAll, ncclGather, ncclScatter: arguments, places, and more ranks than other programs have meshes
// for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"

namespace tutti {
namespace {

constexpr Collective kAll[] = {Collective::all_to_all, Collective::gather, Collective::scatter};

void requireEqual(const std::vector<std::int32_t>& got, const std::vector<std::int32_t>& expected) {
  if (got != expected) throw std::runtime_error("wrong data");
}

/// Root after root, every other one in place.
void checkEveryTypeAndCount(Comm& comm) {
  std::uint64_t seed = 0;
  for (const Collective collective : kAll) {
    for (int type = 0; type < kDataTypeCount; ++type) {
      for (const std::uint64_t count : {0, 1, 5, 333, 70'001}) {
        ++seed;
        const Descriptor d{.collective = collective,
                           .type = static_cast<DataType>(type),
                           .root = hasRoot(collective) ? static_cast<int>(seed) % comm.size() : 0,
                           .count = count};
        test::checkOperation(comm, d, seed, {.in_place = seed % 2 == 0, .shift = seed % 16});
      }
    }
  }
}

TEST(Personalized, EveryTypeCountAndRoot) {
  for (const int nranks : {1, 2, 3, 5})
    EXPECT_EQ(test::runRanks(nranks, checkEveryTypeAndCount), test::noErrors(nranks)) << nranks;
}

TEST(Personalized, MoreRanksThanAMeshOfReductionsHas) {
  EXPECT_EQ(test::runRanks(kMaxMeshRanks + 2,
                           [](Comm& comm) {
                             for (const Collective collective : kAll) {
                               const Descriptor d{.collective = collective,
                                                  .type = DataType::int32,
                                                  .root = hasRoot(collective) ? 65 : 0,
                                                  .count = 50};
                               test::checkOperation(comm, d, 1, {});
                             }
                           }),
            test::noErrors(kMaxMeshRanks + 2));
}

/// Large enough for loans by reference, which must not be taken of what is overwritten.
TEST(Personalized, LargeInPlace) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             for (const Collective collective : kAll) {
                               const Descriptor d{
                                   .collective = collective, .type = DataType::int32, .count = 3'000'001};
                               test::checkOperation(comm, d, 4, {.in_place = true, .input_registered = true});
                             }
                           }),
            test::noErrors(2));
}

TEST(Personalized, PlacesInsideTheBuffersOfTheRoot) {
  EXPECT_EQ(test::runRanks(3,
                           [](Comm& comm) {
                             const int rank = comm.rank();
                             std::vector<std::int32_t> all{-1, -1, -1, -1, -1, -1};
                             std::vector<std::int32_t> own{rank, 10 + rank};
                             std::int32_t* block = all.data() + 2;  // of the root
                             if (rank == 1) std::copy(own.begin(), own.end(), block);
                             comm.gather(rank == 1 ? block : own.data(), rank == 1 ? all.data() : nullptr, 2,
                                         ncclInt32, 1);
                             if (rank == 1) requireEqual(all, {0, 10, 1, 11, 2, 12});
                             if (rank == 1) all = {5, 6, 7, 8, 9, 10};
                             comm.scatter(rank == 1 ? all.data() : nullptr, rank == 1 ? block : own.data(), 2,
                                          ncclInt32, 1);
                             if (rank == 1) requireEqual(all, {5, 6, 7, 8, 9, 10});
                             if (rank != 1) requireEqual(own, {5 + 2 * rank, 6 + 2 * rank});
                           }),
            test::noErrors(3));
}

TEST(Personalized, BadArgumentsAreRefused) {
  std::vector<ncclComm_t> comms(2);
  check(ncclCommInitAll(comms.data(), 2, nullptr));
  const ncclComm_t comm = comms[0];
  float in[8] = {};
  float out[8] = {};
  EXPECT_REFUSED(ncclInvalidArgument, ncclAlltoAll(nullptr, out, 4, ncclFloat, comm, nullptr),
                 "AlltoAll: sendbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAlltoAll(in, nullptr, 4, ncclFloat, comm, nullptr),
                 "AlltoAll: recvbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAlltoAll(in, in + 4, 4, ncclFloat, comm, nullptr),
                 "(sendbuff == recvbuff)");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAlltoAll(in, out, 4, ncclNumTypes, comm, nullptr),
                 "datatype 12 is not");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAlltoAll(in, out, SIZE_MAX / 8, ncclFloat, comm, nullptr),
                 "exceeds what memory");
  EXPECT_REFUSED(ncclInvalidArgument, ncclGather(in, out, 4, ncclFloat, 2, comm, nullptr),
                 "Gather: root 2 is not");
  EXPECT_REFUSED(ncclInvalidArgument, ncclGather(in, nullptr, 4, ncclFloat, 0, comm, nullptr),
                 "Gather: recvbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclGather(nullptr, nullptr, 4, ncclFloat, 1, comm, nullptr),
                 "Gather: sendbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclGather(out + 4, out, 4, ncclFloat, 0, comm, nullptr),
                 "(sendbuff == recvbuff + rank * sendcount)");
  EXPECT_REFUSED(ncclInvalidArgument, ncclScatter(in, out, 4, ncclFloat, -1, comm, nullptr),
                 "Scatter: root -1 is not");
  EXPECT_REFUSED(ncclInvalidArgument, ncclScatter(nullptr, out, 4, ncclFloat, 0, comm, nullptr),
                 "Scatter: sendbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclScatter(nullptr, nullptr, 4, ncclFloat, 1, comm, nullptr),
                 "Scatter: recvbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclScatter(in, in + 4, 4, ncclFloat, 0, comm, nullptr),
                 "(recvbuff == sendbuff + rank * recvcount)");
  EXPECT_EQ(ncclAlltoAll(nullptr, nullptr, 0, ncclFloat, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGather(nullptr, nullptr, 0, ncclFloat, 1, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclScatter(nullptr, nullptr, 0, ncclFloat, 1, comm, nullptr), ncclSuccess);
  for (const ncclComm_t each : comms) check(ncclCommDestroy(each));
}

}  // namespace
}  // namespace tutti
