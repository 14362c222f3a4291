// Making, asking and ending communicators: configurations, InitAll, finalize, the user's reductions.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
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

TEST(InitAll, MakesEveryRankAndKeepsTheDeviceNumbers) {
  const int devices[] = {4, 0, 7};
  ncclComm_t comms[3];
  check(ncclCommInitAll(comms, 3, devices));
  for (int r = 0; r < 3; ++r) {
    int value = -1;
    check(ncclCommUserRank(comms[r], &value));
    EXPECT_EQ(value, r);
    check(ncclCommCount(comms[r], &value));
    EXPECT_EQ(value, 3);
    check(ncclCommCuDevice(comms[r], &value));
    EXPECT_EQ(value, devices[r]);
  }
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommCuDevice(comms[0], nullptr), "device is NULL");
  for (const ncclComm_t comm : comms) check(ncclCommDestroy(comm));
}

TEST(InitAll, RefusesBadArguments) {
  ncclComm_t comms[2];
  const int twice[] = {1, 1};
  const int negative[] = {0, -2};
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitAll(nullptr, 2, nullptr), "comm is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitAll(comms, -1, nullptr), "ndev -1");
  EXPECT_REFUSED(ncclInvalidUsage, ncclCommInitAll(comms, 2, twice), "device 1 is listed twice");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitAll(comms, 2, negative), "device -2 is negative");
  EXPECT_EQ(ncclCommInitAll(comms, 0, nullptr), ncclSuccess);
}

TEST(Config, TheLayoutIsNccls) {
  // Figures of nccl.h 2.28.9 on a 64-bit system.
  EXPECT_EQ(sizeof(ncclConfig_t), 80U);
  EXPECT_EQ(offsetof(ncclConfig_t, blocking), 16U);
  EXPECT_EQ(offsetof(ncclConfig_t, netName), 32U);
  EXPECT_EQ(offsetof(ncclConfig_t, commName), 48U);
  EXPECT_EQ(offsetof(ncclConfig_t, nvlinkCentricSched), 76U);
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(config.size, 80U);
  EXPECT_EQ(config.magic, 0xcafebeefU);
  EXPECT_EQ(config.version, 22809U);
  EXPECT_EQ(config.nvlinkCentricSched, NCCL_CONFIG_UNDEF_INT);
}

ncclResult_t initWith(ncclConfig_t* config) {
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, test::newId(), 0, config);
  EXPECT_EQ(comm != nullptr, result == ncclSuccess);
  if (comm != nullptr) check(ncclCommDestroy(comm));
  return result;
}

TEST(Config, WhatHasNoMeaningHereIsAccepted) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.cgaClusterSize = 4;
  config.minCTAs = 2;
  config.maxCTAs = 8;
  config.netName = "Socket";
  config.splitShare = 1;
  config.commName = "mine";
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  EXPECT_EQ(initWith(&config), ncclSuccess) << lastError();
  EXPECT_EQ(initWith(nullptr), ncclSuccess) << lastError();
}

TEST(Config, WrongValuesAreRefusedByName) {
  ncclConfig_t zeros{};
  EXPECT_REFUSED(ncclInvalidArgument, initWith(&zeros), "NCCL_CONFIG_INITIALIZER");
  const auto refused = [](int ncclConfig_t::*member, int value, const std::string& words) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.*member = value;
    EXPECT_REFUSED(ncclInvalidArgument, initWith(&config), words);
  };
  refused(&ncclConfig_t::blocking, 2, "blocking is 2");
  refused(&ncclConfig_t::cgaClusterSize, -1, "cgaClusterSize is -1");
  refused(&ncclConfig_t::minCTAs, 0, "minCTAs is 0");
  refused(&ncclConfig_t::splitShare, 7, "splitShare is 7");
  refused(&ncclConfig_t::nvlinkCentricSched, 3, "nvlinkCentricSched is 3");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 8;
  config.maxCTAs = 4;
  EXPECT_REFUSED(ncclInvalidArgument, initWith(&config), "minCTAs 8 exceeds maxCTAs 4");
}

TEST(Config, OtherVersionsOfTheStructureAreRead) {
  // A newer header's structure is longer; an older one's ends early, and what follows it is not looked at.
  struct {
    ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
    int unknown[4] = {99, 99, 99, 99};
  } newer;
  newer.known.size = sizeof(newer);
  newer.known.version = 23007;
  EXPECT_EQ(initWith(&newer.known), ncclSuccess) << lastError();
  ncclConfig_t older = NCCL_CONFIG_INITIALIZER;
  older.size = 24;
  older.version = 21400;
  older.cgaClusterSize = -77;  // padding in that version
  older.minCTAs = -77;
  EXPECT_EQ(initWith(&older), ncclSuccess) << lastError();
}

TEST(Config, FieldsThatAreNewerThanItsVersionAreNotLookedAt) {
  // The figures are those of NCCL's history: which version gave each field its place.
  struct Field {
    int ncclConfig_t::*member;
    unsigned since;
    const char* name;
  };
  const Field fields[] = {
      {&ncclConfig_t::cgaClusterSize, 21700, "cgaClusterSize"},
      {&ncclConfig_t::minCTAs, 21700, "minCTAs"},
      {&ncclConfig_t::maxCTAs, 21700, "maxCTAs"},
      {&ncclConfig_t::splitShare, 21700, "splitShare"},
      {&ncclConfig_t::trafficClass, 22500, "trafficClass"},
      {&ncclConfig_t::collnetEnable, 22700, "collnetEnable"},
      {&ncclConfig_t::CTAPolicy, 22700, "CTAPolicy"},
      {&ncclConfig_t::shrinkShare, 22700, "shrinkShare"},
      {&ncclConfig_t::nvlsCTAs, 22700, "nvlsCTAs"},
      {&ncclConfig_t::nChannelsPerNetPeer, 22800, "nChannelsPerNetPeer"},
      {&ncclConfig_t::nvlinkCentricSched, 22800, "nvlinkCentricSched"},
  };
  for (const Field& field : fields) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.*field.member = -77;
    config.version = field.since;
    EXPECT_REFUSED(ncclInvalidArgument, initWith(&config), field.name);
    config.version = field.since - 1;
    EXPECT_EQ(initWith(&config), ncclSuccess) << field.name << ": " << lastError();
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.magic = 0xcafebeee;
  EXPECT_REFUSED(ncclInvalidArgument, initWith(&config), "NCCL_CONFIG_INITIALIZER");
  config = NCCL_CONFIG_INITIALIZER;
  config.size = 16;  // ends before the first field
  EXPECT_REFUSED(ncclInvalidArgument, initWith(&config), "NCCL_CONFIG_INITIALIZER");
}

TEST(Scalable, SeveralIdsMakeOneCommunicator) {
  ncclUniqueId ids[2] = {test::newId(), test::newId()};
  EXPECT_EQ(test::runThreads(3,
                             [&](int rank) {
                               ncclComm_t comm = nullptr;
                               check(ncclCommInitRankScalable(&comm, 3, rank, 2, ids, nullptr));
                               Comm made(comm);
                               float value = 1;
                               made.allReduce(&value, &value, 1, ncclSum);
                               if (value != 3) throw std::runtime_error("wrong sum");
                             }),
            test::noErrors(3));
  ncclComm_t comm = nullptr;
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, 0, ids, nullptr), "nId 0");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, 2, ids, nullptr), "nId 2");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr),
                 "commIds is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRankScalable(nullptr, 1, 0, 1, ids, nullptr),
                 "newcomm is NULL");
}

TEST(NonBlocking, InitGoesOnInTheBackground) {
  const ncclUniqueId id = test::newId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2] = {nullptr, nullptr};
  ASSERT_EQ(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config), ncclInProgress);
  ASSERT_NE(comms[0], nullptr);
  EXPECT_EQ(stateOf(comms[0]), ncclInProgress);  // rank 1 is not there yet
  int value = 0;
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommCount(comms[0], &value), "still being made");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommDestroy(comms[0]), "use ncclCommAbort");
  ASSERT_EQ(ncclCommInitRankConfig(&comms[1], 2, id, 1, &config), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settledStateOf(comm), ncclSuccess) << lastError();
  float data[2] = {1, 2};
  check(ncclGroupStart());
  for (int r = 0; r < 2; ++r)
    check(ncclAllReduce(&data[r], &data[r], 1, ncclFloat, ncclSum, comms[r], nullptr));
  check(ncclGroupEnd());
  EXPECT_EQ(data[0], 3);
  for (const ncclComm_t comm : comms) {
    const ncclResult_t result = ncclCommFinalize(comm);
    EXPECT_TRUE(result == ncclSuccess || result == ncclInProgress);
    EXPECT_EQ(settledStateOf(comm), ncclSuccess);
    check(ncclCommDestroy(comm));
  }
}

TEST(NonBlocking, AGroupOfInits) {
  const ncclUniqueId id = test::newId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[3];
  check(ncclGroupStart());
  for (int r = 0; r < 3; ++r) EXPECT_EQ(ncclCommInitRankConfig(&comms[r], 3, id, r, &config), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settledStateOf(comm), ncclSuccess);
  for (const ncclComm_t comm : comms) check(ncclCommDestroy(comm));
}

TEST(NonBlocking, BothKindsInOneGroupAreRefused) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2];
  check(ncclGroupStart());
  check(ncclCommInitRankConfig(&comms[0], 1, test::newId(), 0, &config));
  check(ncclCommInitRank(&comms[1], 1, test::newId(), 0));
  EXPECT_REFUSED(ncclInvalidUsage, ncclGroupEnd(), "blocking and non-blocking");
  EXPECT_EQ(comms[0], nullptr);
}

TEST(NonBlocking, AFailureIsToldByTheState) {
  const ncclUniqueId id = test::newId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2];
  for (ncclComm_t& comm : comms) {
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclInProgress);
  }
  for (const ncclComm_t comm : comms) {
    const ncclResult_t state = settledStateOf(comm);
    EXPECT_NE(state, ncclSuccess);
    EXPECT_NE(state, ncclInProgress);
    int value = 0;
    EXPECT_REFUSED(state, ncclCommCount(comm, &value), "joined as rank 1");
    check(ncclCommDestroy(comm));
  }
}

TEST(NonBlocking, AbortDuringInitTellsTheOthers) {
  const ncclUniqueId id = test::newId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t aborted = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&aborted, 2, id, 0, &config), ncclInProgress);
  check(ncclCommAbort(aborted));
  EXPECT_EQ(ncclCommAbort(aborted), ncclInvalidArgument);
  Comm other(2, id, 1);
  float value = 1;
  EXPECT_REFUSED(ncclRemoteError,
                 ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, other.handle(), nullptr),
                 "aborted the communicator");
}

TEST(Finalize, RefusesWhatFollows) {
  Comm comm(1, test::newId(), 0);
  comm.finalize();
  float value = 1;
  EXPECT_REFUSED(ncclInvalidUsage,
                 ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm.handle(), nullptr),
                 "after ncclCommFinalize");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommFinalize(comm.handle()), "finalized already");
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(stateOf(comm.handle()), ncclSuccess);
}

TEST(RedOps, BadArgumentsAreRefused) {
  Comm comm(1, test::newId(), 0);
  float scalar = 2;
  ncclRedOp_t op = ncclSum;
  const auto create = [&](ncclRedOp_t* out, void* at, int type, int residence, ncclComm_t of) {
    return ncclRedOpCreatePreMulSum(out, at, static_cast<ncclDataType_t>(type),
                                    static_cast<ncclScalarResidence_t>(residence), of);
  };
  EXPECT_REFUSED(ncclInvalidArgument, create(nullptr, &scalar, ncclFloat, 1, comm.handle()), "op is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, create(&op, nullptr, ncclFloat, 1, comm.handle()), "scalar is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, create(&op, &scalar, 15, 1, comm.handle()), "datatype 15");
  EXPECT_REFUSED(ncclInvalidArgument, create(&op, &scalar, ncclFloat, 3, comm.handle()), "residence 3");
  EXPECT_REFUSED(ncclInvalidArgument, create(&op, &scalar, ncclFloat, 1, nullptr), "comm is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclRedOpDestroy(ncclAvg, comm.handle()), "op 4 (avg) is built in");
}

TEST(RedOps, EachRankScalesItsOwnContribution) {
  EXPECT_EQ(test::runRanks(4,
                           [](Comm& comm) {
                             for (const std::size_t count : {1U, 1000U, 200'000U}) {
                               auto scalar = static_cast<float>(1 << comm.rank());
                               ncclRedOp_t op = ncclSum;
                               check(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat,
                                                              ncclScalarHostImmediate, comm.handle()));
                               scalar = 99;  // was read already
                               std::vector<float> in(count, 3);
                               std::vector<float> out(count);
                               comm.allReduce(in.data(), out.data(), count, op);
                               check(ncclRedOpDestroy(op, comm.handle()));
                               for (const float value : out) {
                                 if (value != 45) throw std::runtime_error("wrong sum");  // 3 (1 + 2 + 4 + 8)
                               }
                             }
                           }),
            test::noErrors(4));
}

TEST(RedOps, ADeviceScalarIsReadWhenTheOperationRuns) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             std::int64_t scalar = 1;
                             ncclRedOp_t op = ncclSum;
                             check(ncclRedOpCreatePreMulSum(&op, &scalar, ncclInt64, ncclScalarDevice,
                                                            comm.handle()));
                             scalar = 5;
                             std::int64_t value = 7;
                             Group group;
                             comm.allReduce(&value, &value, 1, ncclInt64, op);
                             // What is recorded or queued keeps its scalar's place.
                             check(ncclRedOpDestroy(op, comm.handle()));
                             scalar = 10;
                             group.end();
                             if (value != 140) throw std::runtime_error("wrong sum");
                           }),
            test::noErrors(2));
}

TEST(RedOps, ASingleRankScalesToo) {
  Comm comm(1, test::newId(), 0);
  double scalar = 0.5;
  ncclRedOp_t op = ncclSum;
  check(ncclRedOpCreatePreMulSum(&op, &scalar, ncclDouble, ncclScalarHostImmediate, comm.handle()));
  double value = 3;
  comm.allReduce(&value, &value, 1, ncclDouble, op);
  EXPECT_EQ(value, 1.5);
  check(ncclRedOpDestroy(op, comm.handle()));
}

TEST(RedOps, OthersAndDestroyedOnesAreRefused) {
  Comm comm(1, test::newId(), 0);
  Comm other(1, test::newId(), 0);
  float scalar = 2;
  float value = 1;
  ncclRedOp_t op = ncclSum;
  check(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, comm.handle()));
  EXPECT_GE(static_cast<int>(op), static_cast<int>(ncclNumOps));
  EXPECT_REFUSED(ncclInvalidArgument, ncclRedOpDestroy(op, other.handle()), "made for another one");
  EXPECT_REFUSED(ncclInvalidArgument,
                 ncclAllReduce(&value, &value, 1, ncclFloat, op, other.handle(), nullptr),
                 "made for another one");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(&value, &value, 1, ncclInt32, op, comm.handle(), nullptr),
                 "was made for float, but datatype is int32");
  check(ncclRedOpDestroy(op, comm.handle()));
  EXPECT_REFUSED(ncclInvalidArgument, ncclRedOpDestroy(op, comm.handle()), "destroyed already");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(&value, &value, 1, ncclFloat, op, comm.handle(), nullptr),
                 "it was destroyed");
}

}  // namespace
}  // namespace tutti
