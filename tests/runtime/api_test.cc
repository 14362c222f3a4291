// The C API's contract: arguments, handles, texts.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"
#include "tutti/nccl_newer.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

using test::lastError;

class Single : public testing::Test {
 protected:
  Comm comm_{1, test::newId(), 0};
  float in_[4] = {1, 2, 3, 4};
  float out_[4] = {0, 0, 0, 0};
};

TEST(Api, VersionAndTexts) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 22809);
  EXPECT_REFUSED(ncclInvalidArgument, ncclGetVersion(nullptr), "version is NULL");
  for (int code = -1; code <= 9; ++code)
    EXPECT_NE(ncclGetErrorString(static_cast<ncclResult_t>(code)), nullptr);
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
}

TEST_F(Single, ThereAreNoWindows) {
  void* memory = nullptr;
  check(ncclMemAlloc(&memory, 8192));
  auto window = reinterpret_cast<ncclWindow_t>(1);
  const auto registerWindow = [&](void* at, std::size_t bytes, int flags) {
    return ncclCommWindowRegister(comm_.handle(), at, bytes, &window, flags);
  };
  EXPECT_EQ(registerWindow(memory, 8192, NCCL_WIN_COLL_SYMMETRIC), ncclSuccess);
  EXPECT_EQ(window, nullptr);  // "not available"
  EXPECT_EQ(ncclCommWindowDeregister(comm_.handle(), window), ncclSuccess);
  EXPECT_REFUSED(ncclInvalidArgument, registerWindow(nullptr, 8192, 0), "buff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, registerWindow(memory, 0, 0), "size is 0");
  EXPECT_REFUSED(ncclInvalidArgument, registerWindow(memory, 1, 8), "winFlags 0x8");
  EXPECT_REFUSED(ncclInvalidArgument, registerWindow(static_cast<char*>(memory) + 8, 8, 0), "not aligned");
  window = reinterpret_cast<ncclWindow_t>(1);
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommWindowDeregister(comm_.handle(), window), "is no window");
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
}

TEST_F(Single, WhatIsNotSupportedSaysWhatToUse) {
  uint64_t bytes = 0;
  EXPECT_REFUSED(ncclInvalidUsage, ncclCommMemStats(comm_.handle(), ncclStatGpuMemTotal, &bytes),
                 "ncclCommMemStats is not supported: tuttiCommStatistics");
  EXPECT_REFUSED(ncclInvalidUsage, ncclSignal(0, 0, 0, 0, comm_.handle(), nullptr),
                 "ncclSignal is not supported: there are no windows. Use ncclSend and ncclRecv");
  EXPECT_REFUSED(ncclInvalidUsage, ncclCommSuspend(comm_.handle(), NCCL_SUSPEND_MEM), "ncclCommSuspend");
}

TEST(Api, Teams) {
  ncclComm_t comms[3];
  check(ncclCommInitAll(comms, 3, nullptr));
  const ncclTeam_t world = ncclTeamWorld(comms[1]);
  EXPECT_EQ(world.nRanks, 3);
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.stride, 1);
  const ncclTeam_t local = ncclTeamLsa(comms[1]);
  EXPECT_EQ(local.nRanks, 3);
  const ncclTeam_t rail = ncclTeamRail(comms[1]);
  EXPECT_EQ(rail.nRanks, 1);
  EXPECT_EQ(rail.stride, 3);
  EXPECT_EQ(ncclTeamRankToWorld(comms[1], rail, 0), 1);
  EXPECT_EQ(ncclTeamRankToLsa(comms[1], local, 2), 2);
  for (const ncclComm_t comm : comms) check(ncclCommDestroy(comm));
  EXPECT_EQ(ncclTeamWorld(comms[1]).nRanks, 0);
  EXPECT_EQ(ncclTeamRankToWorld(nullptr, world, 0), -1);
}

TEST(Api, InitArguments) {
  const ncclUniqueId id = test::newId();
  auto comm = reinterpret_cast<ncclComm_t>(1);
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRank(&comm, 0, id, 0), "nranks 0");
  EXPECT_EQ(comm, nullptr);
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRank(&comm, 1025, id, 0), "nranks 1025");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRank(&comm, 2, id, 2), "rank 2 is not one of ranks 0 to 1");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRank(&comm, 2, id, -1), "rank -1");
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRank(nullptr, 1, id, 0), "comm is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclGetUniqueId(nullptr), "uniqueId is NULL");
}

TEST(Api, DamagedIdsAreRefused) {
  ncclComm_t comm = nullptr;
  ncclUniqueId zeros{};
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommInitRank(&comm, 1, zeros, 0), "not a unique id of Tutti");
  for (const int byte : {8, 12, 40, 100, 127}) {
    ncclUniqueId damaged = test::newId();
    damaged.internal[byte] = static_cast<char>(damaged.internal[byte] ^ 0x20);
    EXPECT_EQ(ncclCommInitRank(&comm, 1, damaged, 0), ncclInvalidArgument) << byte;
  }
}

TEST_F(Single, OperationArguments) {
  const ncclComm_t comm = comm_.handle();
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(nullptr, out_, 4, ncclFloat, ncclSum, comm, nullptr),
                 "AllReduce: sendbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(in_, nullptr, 4, ncclFloat, ncclSum, comm, nullptr),
                 "AllReduce: recvbuff is NULL");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(in_, out_, 4, ncclNumTypes, ncclSum, comm, nullptr),
                 "datatype 12 is not");
  int wraps = 263;  // 7, float, if only its low byte were looked at
  ncclDataType_t wrapping;
  std::memcpy(&wrapping, &wraps, sizeof(wrapping));
  EXPECT_EQ(ncclAllReduce(in_, out_, 4, wrapping, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(in_, out_, 4, ncclFloat, ncclNumOps, comm, nullptr),
                 "op 5 is not");
  EXPECT_REFUSED(ncclInvalidArgument, ncclBroadcast(in_, out_, 4, ncclFloat, 1, comm, nullptr),
                 "root 1 is not");
  EXPECT_REFUSED(ncclInvalidArgument, ncclBroadcast(in_, out_, 4, ncclFloat, -1, comm, nullptr),
                 "root -1 is not");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(in_, in_ + 1, 3, ncclFloat, ncclSum, comm, nullptr),
                 "overlap");
  EXPECT_REFUSED(ncclInvalidArgument,
                 ncclAllReduce(in_, out_, SIZE_MAX / 2, ncclFloat, ncclSum, comm, nullptr),
                 "exceeds what memory can hold");
  EXPECT_REFUSED(ncclInvalidArgument,
                 ncclAllReduce(in_, out_, SIZE_MAX / 64, ncclFloat, ncclSum, comm, nullptr),
                 "AllReduce: sendbuff: ");
  EXPECT_REFUSED(ncclInvalidArgument, ncclAllReduce(in_, out_, 4, ncclFloat, ncclSum, nullptr, nullptr),
                 "comm is NULL");
  EXPECT_REFUSED(ncclInvalidArgument,
                 ncclAllReduce(in_, out_, 4, ncclFloat, ncclSum, comm, reinterpret_cast<cudaStream_t>(8)),
                 "stream is neither NULL nor a stream of tuttiStreamCreate");
  // None of these hurt the communicator.
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  comm_.allReduce(in_, out_, 4, ncclSum);
  EXPECT_EQ(out_[3], 4);
}

TEST_F(Single, CountZeroNeedsNoBuffers) {
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comm_.handle(), nullptr), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(nullptr, nullptr, 0, ncclInt8, 0, comm_.handle(), nullptr), ncclSuccess);
}

TEST(Api, TransportsAreNamed) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             EXPECT_STREQ(comm.transport(comm.rank()).name, "self");
                             EXPECT_STREQ(comm.transport(1 - comm.rank()).name, "inproc");
                             EXPECT_STREQ(comm.transport(1 - comm.rank()).details, "");
                           }),
            test::noErrors(2));
}

TEST_F(Single, TransportArguments) {
  tuttiTransport_t transport;
  EXPECT_REFUSED(ncclInvalidArgument, tuttiCommTransport(comm_.handle(), 1, &transport),
                 "peer 1 is no rank of a communicator of 1");
  EXPECT_REFUSED(ncclInvalidArgument, tuttiCommTransport(comm_.handle(), -1, &transport),
                 "peer -1 is no rank");
  EXPECT_REFUSED(ncclInvalidArgument, tuttiCommTransport(comm_.handle(), 0, nullptr), "transport is NULL");
  EXPECT_EQ(tuttiCommTransport(nullptr, 0, &transport), ncclInvalidArgument);
}

TEST(Api, DestroyedHandlesAreRefused) {
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, 1, test::newId(), 0));
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_REFUSED(ncclInvalidArgument, ncclCommDestroy(comm), "destroyed already");
  EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
  int count = 0;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
}

TEST(Api, UsedIdIsRefused) {
  const ncclUniqueId id = test::newId();
  { const Comm comm(1, id, 0); }
  ncclComm_t again = nullptr;
  // The rendezvous ends right after its ranks have left.
  ncclResult_t result = ncclInternalError;
  for (int attempt = 0; attempt < 100; ++attempt) {
    result = ncclCommInitRank(&again, 1, id, 0);
    if (lastError().find("id was used before") != std::string::npos) break;
  }
  EXPECT_EQ(result, ncclRemoteError) << lastError();
  EXPECT_EQ(again, nullptr);
}

TEST(Api, Memory) {
  void* memory = nullptr;
  EXPECT_EQ(ncclMemAlloc(&memory, 100'000), ncclSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0U);
  std::memset(memory, 1, 100'000);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_REFUSED(ncclInvalidArgument, ncclMemFree(memory), "freed already");
  EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
  EXPECT_EQ(ncclMemAlloc(&memory, 0), ncclSuccess);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_EQ(ncclMemAlloc(nullptr, 1), ncclInvalidArgument);
  EXPECT_REFUSED(ncclSystemError, ncclMemAlloc(&memory, std::size_t{1} << 60), "are free");
  EXPECT_REFUSED(ncclSystemError, ncclMemAlloc(&memory, SIZE_MAX),
                 "ncclMemAlloc: 18446744073709551615 bytes");
  EXPECT_EQ(std::string(ncclGetLastError(nullptr)).find("TUTTI_"), std::string::npos);
  EXPECT_EQ(memory, nullptr);
}

TEST(Api, ThreadsReadTheirOwnLastError) {
  const auto fail = [](const char* words, const auto& call) {
    EXPECT_REFUSED(ncclInvalidArgument, call(), words);
  };
  fail("version is NULL", [] { return ncclGetVersion(nullptr); });
  std::thread([&] {
    EXPECT_NE(lastError().find("version is NULL"), std::string::npos) << "of the process: " << lastError();
    fail("uniqueId is NULL", [] { return ncclGetUniqueId(nullptr); });
  }).join();
  EXPECT_NE(lastError().find("version is NULL"), std::string::npos) << lastError();
}

std::size_t openDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

std::size_t mappedSegments() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:tutti") != std::string::npos ? 1 : 0;
  return count;
}

TEST(Api, NothingIsLeftBehind) {
  const auto use = [] {
    EXPECT_EQ(test::runRanks(3, [](Comm& comm) { comm.barrier(); }), test::noErrors(3));
  };
  use();
  const std::size_t descriptors = openDescriptors();
  for (int i = 0; i < 20; ++i) use();
  EXPECT_EQ(mappedSegments(), 0U);
  // A rendezvous closes its socket a moment after its last rank has left.
  for (int i = 0; i < 6000 && openDescriptors() > descriptors; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(openDescriptors(), descriptors);
}

}  // namespace
}  // namespace tutti
